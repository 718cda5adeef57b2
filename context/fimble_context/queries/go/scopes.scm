(function_declaration body: (_) @body) @scope
(method_declaration body: (_) @body) @scope
(func_literal body: (_) @body) @scope
(type_declaration
  (type_spec
    name: (_) @name
    type: (struct_type (field_declaration_list) @body))) @scope
(type_declaration
  (type_spec
    name: (_) @name
    type: (interface_type) @body)) @scope
