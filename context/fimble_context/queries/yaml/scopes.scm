(block_mapping_pair value: (block_node) @body) @scope
(block_sequence_item) @scope
