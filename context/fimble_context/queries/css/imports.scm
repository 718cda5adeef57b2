(import_statement (string_value) @import.source) @import
(import_statement (call_expression (arguments (_) @import.source))) @import
