(call_expression
  (function_name) @_var
  (arguments (plain_value) @reference.name)
  (#eq? @_var "var"))
(class_name) @reference.name
(id_name) @reference.name
(tag_name) @reference.type
(function_name) @reference.call
