(block_mapping_pair
  key: (_) @name
  value: (block_node) @body) @definition.key
(block_mapping_pair key: (_) @name) @definition.key
