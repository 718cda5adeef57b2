(document) @block
(object) @items
(array) @items
