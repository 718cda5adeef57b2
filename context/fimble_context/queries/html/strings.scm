(comment) @comment
(quoted_attribute_value) @string
