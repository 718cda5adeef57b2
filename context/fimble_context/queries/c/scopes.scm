(function_definition body: (_) @body) @scope
(struct_specifier body: (_) @body) @scope
(union_specifier body: (_) @body) @scope
(enum_specifier body: (_) @body) @scope
