(import_declaration) @import
(import_declaration path: (identifier) @import.source)
(import_declaration (namespace_selectors (identifier) @import.name))
(import_declaration
  (namespace_selectors
    (arrow_renamed_identifier
      name: (identifier) @import.name
      alias: (identifier) @import.alias)))
(package_clause) @package
