(module body: (_) @body) @scope
(class body: (_) @body) @scope
(singleton_class body: (_) @body) @scope
(method body: (_) @body) @scope
(singleton_method body: (_) @body) @scope
(block body: (_) @body) @scope
(do_block body: (_) @body) @scope
