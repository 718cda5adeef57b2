(call method: (identifier) @reference.call)
(superclass (constant) @reference.type)
(constant) @reference.name
(identifier) @reference.name
