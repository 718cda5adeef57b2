(class_declaration body: (_) @body) @scope
(protocol_declaration body: (_) @body) @scope
(function_declaration) @scope
(init_declaration body: (_) @body) @scope
(deinit_declaration body: (_) @body) @scope
(property_declaration computed_value: (_) @body) @scope
(lambda_literal) @scope
