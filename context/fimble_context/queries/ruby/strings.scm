(comment) @comment
(string) @string
(heredoc_body) @string
(regex) @string
(string_array) @string
(subshell) @string
(interpolation) @interpolation
