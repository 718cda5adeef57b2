(document) @block
(table) @block
(table_array_element) @block
(array) @items
(inline_table) @items
