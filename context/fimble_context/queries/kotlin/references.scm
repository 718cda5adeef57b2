(call_expression . (identifier) @reference.call)
(call_expression . (navigation_expression (identifier) @reference.call .))
(user_type (identifier) @reference.type)
(identifier) @reference.name
