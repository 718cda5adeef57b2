(line_comment) @comment
(block_comment) @comment
(string_literal) @string
(character_literal) @string
