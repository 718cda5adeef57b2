(import_declaration (scoped_identifier) @import.source) @import
(import_declaration (scoped_identifier) @import.source (asterisk) @import.all) @import
(package_declaration) @package
