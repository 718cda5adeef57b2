(class_declaration [(class_body) (enum_class_body)] @body) @scope
(object_declaration (class_body) @body) @scope
(companion_object (class_body) @body) @scope
(function_declaration (function_body) @body) @scope
(anonymous_initializer (block) @body) @scope
(secondary_constructor (block) @body) @scope
(lambda_literal) @scope
