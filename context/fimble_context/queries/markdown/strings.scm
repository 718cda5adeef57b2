(html_block) @comment
(fenced_code_block) @string
(indented_code_block) @string
