(function_declaration body: (_) @body) @scope
(function_definition body: (_) @body) @scope
