(comment) @comment
(marginalia) @comment
((literal) @string (#match? @string "^[eEnN]?'"))
