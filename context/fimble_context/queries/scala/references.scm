(call_expression function: (identifier) @reference.call)
(call_expression function: (field_expression field: (identifier) @reference.call))
(type_identifier) @reference.type
(identifier) @reference.name
