(chunk) @block
(block) @block
(arguments) @items
(parameters) @items
(table_constructor) @items
