(namespace_use_declaration
  (namespace_use_clause [(qualified_name) (name)] @import.source !alias)) @import
(namespace_use_declaration
  (namespace_use_clause
    [(qualified_name) (name)] @import.source
    alias: (name) @import.alias)) @import
(namespace_use_declaration
  (namespace_name) @import.source
  body: (namespace_use_group
    (namespace_use_clause . (name) @import.name))) @import
(expression_statement
  [
    (require_expression (string) @import.source)
    (require_once_expression (string) @import.source)
    (include_expression (string) @import.source)
    (include_once_expression (string) @import.source)
  ]) @import
(namespace_definition name: (_)) @package
