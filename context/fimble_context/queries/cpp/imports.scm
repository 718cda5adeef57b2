(using_declaration) @import
