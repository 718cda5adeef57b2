(class_specifier body: (_) @body) @scope
(namespace_definition body: (_) @body) @scope
(lambda_expression body: (_) @body) @scope
