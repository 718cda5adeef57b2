(class_definition body: (_) @body) @scope
(trait_definition body: (_) @body) @scope
(object_definition body: (_) @body) @scope
(enum_definition body: (_) @body) @scope
(function_definition body: (_) @body) @scope
(lambda_expression) @scope
