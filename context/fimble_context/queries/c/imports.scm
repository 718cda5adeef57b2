(preproc_include path: (string_literal) @import.source) @import
(preproc_include path: (system_lib_string) @import.source) @import
