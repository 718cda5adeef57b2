(function_declaration body: (_) @body) @scope
(generator_function_declaration body: (_) @body) @scope
(function_expression body: (_) @body) @scope
(arrow_function body: (_) @body) @scope
(method_definition body: (_) @body) @scope
(class_declaration body: (_) @body) @scope
(class body: (_) @body) @scope
