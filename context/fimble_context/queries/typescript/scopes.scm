(abstract_class_declaration body: (_) @body) @scope
(interface_declaration body: (_) @body) @scope
(enum_declaration body: (_) @body) @scope
(internal_module body: (_) @body) @scope
(module body: (_) @body) @scope
