(method_invocation name: (identifier) @reference.call)
(type_identifier) @reference.type
(marker_annotation name: (identifier) @reference.type)
(annotation name: (identifier) @reference.type)
(identifier) @reference.name
