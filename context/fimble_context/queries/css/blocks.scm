(stylesheet) @block
(block) @block
(keyframe_block_list) @block
(selectors) @items
(arguments) @items
