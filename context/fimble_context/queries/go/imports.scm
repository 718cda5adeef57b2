(import_spec path: (_) @import.source) @import
(import_spec name: (package_identifier) @import.alias path: (_) @import.source) @import
(package_clause) @package
