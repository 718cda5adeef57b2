(function_item body: (_) @body) @scope
(struct_item body: (_) @body) @scope
(enum_item body: (_) @body) @scope
(trait_item body: (_) @body) @scope
(impl_item type: (_) @name body: (_) @body) @scope
(mod_item body: (_) @body) @scope
(closure_expression body: (_) @body) @scope
