(comment) @comment
(js_comment) @comment
(string_value) @string
