(type_identifier) @reference.type
(class_heritage (extends_clause value: (identifier) @reference.type))
