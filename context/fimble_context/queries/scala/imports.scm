(import_declaration (identifier) @import.part) @import
(import_declaration (namespace_selectors (identifier) @import.name)) @import
(import_declaration
  (namespace_selectors
    (arrow_renamed_identifier
      name: (identifier) @import.name
      alias: (identifier) @import.alias))) @import
(import_declaration (namespace_wildcard) @import.all) @import
(package_clause) @package
