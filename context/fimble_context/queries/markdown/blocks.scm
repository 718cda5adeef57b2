(document) @block
(section) @block
(list) @block
(list_item) @block
(block_quote) @block
(pipe_table) @items
