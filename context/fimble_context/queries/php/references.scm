(function_call_expression function: (name) @reference.call)
(function_call_expression function: (qualified_name (name) @reference.call))
(member_call_expression name: (name) @reference.call)
(scoped_call_expression name: (name) @reference.call)
(object_creation_expression (name) @reference.type)
(named_type (name) @reference.type)
(base_clause (name) @reference.type)
(class_interface_clause (name) @reference.type)
(name) @reference.name
