(function_definition body: (block) @body) @scope
(class_definition body: (block) @body) @scope
(lambda body: (_) @body) @scope
