(comment) @comment
(double_quote_scalar) @string
(single_quote_scalar) @string
(block_scalar) @string
