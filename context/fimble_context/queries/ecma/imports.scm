(import_statement source: (string) @import.source) @import
(import_statement
  (import_clause (identifier) @import.name)
  source: (string) @import.source) @import
(import_statement
  (import_clause (named_imports (import_specifier name: (_) @import.name !alias)))
  source: (string) @import.source) @import
(import_statement
  (import_clause
    (named_imports
      (import_specifier name: (_) @import.name alias: (_) @import.alias)))
  source: (string) @import.source) @import
(import_statement
  (import_clause (namespace_import (identifier) @import.alias))
  source: (string) @import.source) @import
(export_statement source: (string) @import.source) @import
(lexical_declaration
  (variable_declarator
    name: (identifier) @import.alias
    value: (call_expression
      function: (identifier) @_require
      arguments: (arguments . (string) @import.source)))
  (#eq? @_require "require")) @import
(lexical_declaration
  (variable_declarator
    name: (object_pattern (shorthand_property_identifier_pattern) @import.name)
    value: (call_expression
      function: (identifier) @_require
      arguments: (arguments . (string) @import.source)))
  (#eq? @_require "require")) @import
