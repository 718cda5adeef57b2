(invocation_expression function: (identifier) @reference.call)
(invocation_expression
  function: (member_access_expression name: (identifier) @reference.call))
(object_creation_expression type: (identifier) @reference.type)
(base_list (identifier) @reference.type)
(generic_name (identifier) @reference.type)
(parameter type: (identifier) @reference.type)
(variable_declaration type: (identifier) @reference.type)
(method_declaration returns: (identifier) @reference.type)
(identifier) @reference.name
