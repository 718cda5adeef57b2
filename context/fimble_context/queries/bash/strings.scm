(comment) @comment
(string) @string
(raw_string) @string
(ansi_c_string) @string
(heredoc_body) @string
(regex) @string
(expansion) @interpolation
(command_substitution) @interpolation
