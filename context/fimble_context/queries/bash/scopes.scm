(function_definition body: (_) @body) @scope
(subshell) @scope
