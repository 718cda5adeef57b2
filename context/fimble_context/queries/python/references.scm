(call function: (identifier) @reference.call)
(call function: (attribute attribute: (identifier) @reference.call))
(decorator (identifier) @reference.call)
(type (identifier) @reference.type)
(type (generic_type (identifier) @reference.type))
(class_definition superclasses: (argument_list (identifier) @reference.type))
(identifier) @reference.name
