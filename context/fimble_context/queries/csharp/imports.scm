(using_directive (qualified_name) @import.source) @import
(using_directive . (identifier) @import.source .) @import
(using_directive name: (identifier) @import.alias (qualified_name) @import.source) @import
