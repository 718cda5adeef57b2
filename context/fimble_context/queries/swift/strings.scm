(comment) @comment
(multiline_comment) @comment
(line_string_literal) @string
(multi_line_string_literal) @string
(raw_string_literal) @string
(interpolated_expression) @interpolation
