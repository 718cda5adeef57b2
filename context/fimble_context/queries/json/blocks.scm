(document) @block
(object) @block
(array) @block
