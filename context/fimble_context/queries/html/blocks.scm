(document) @block
(element) @block
