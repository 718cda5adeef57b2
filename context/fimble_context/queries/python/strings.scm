(comment) @comment
(string) @string
(interpolation) @interpolation
