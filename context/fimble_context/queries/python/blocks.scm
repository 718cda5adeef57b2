(module) @block
(block) @block
(argument_list) @items
(parameters) @items
(list) @items
(tuple) @items
(dictionary) @items
(set) @items
