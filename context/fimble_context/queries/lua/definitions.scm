(function_declaration
  name: (_) @name
  body: (block)? @body) @definition.function

(assignment_statement
  (variable_list . name: (_) @name)
  (expression_list . value: (function_definition body: (block)? @body))) @definition.function

(chunk
  (variable_declaration
    (assignment_statement (variable_list name: (identifier) @name))) @definition.variable)

(chunk
  (assignment_statement (variable_list name: (_) @name)) @definition.variable)

(field
  name: (identifier) @name
  value: (function_definition body: (block)? @body)) @definition.function
