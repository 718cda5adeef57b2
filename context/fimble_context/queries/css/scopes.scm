(rule_set (selectors) @name (block) @body) @scope
(media_statement (block) @body) @scope
(supports_statement (block) @body) @scope
(keyframes_statement (keyframe_block_list) @body) @scope
