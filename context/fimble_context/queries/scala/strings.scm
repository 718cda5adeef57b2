(comment) @comment
(block_comment) @comment
(string) @string
(character_literal) @string
(interpolated_string_expression) @string
(interpolation) @interpolation
