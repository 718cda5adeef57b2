(class_declaration body: (_) @body) @scope
(record_declaration body: (_) @body) @scope
(interface_declaration body: (_) @body) @scope
(annotation_type_declaration body: (_) @body) @scope
(enum_declaration body: (_) @body) @scope
(method_declaration body: (_) @body) @scope
(constructor_declaration body: (_) @body) @scope
(lambda_expression body: (_) @body) @scope
