(block_mapping) @block
(block_sequence) @block
(flow_mapping) @items
(flow_sequence) @items
