(comment) @comment
(string_literal) @string
(char_literal) @string
(system_lib_string) @string
