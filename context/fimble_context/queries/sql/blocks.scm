(program) @block
(function_body) @block
(block) @block
(column_definitions) @items
(select_expression) @items
(list) @items
