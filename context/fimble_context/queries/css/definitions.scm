(rule_set
  (selectors) @name
  (block) @body) @definition.selector

(media_statement
  .
  (_) @name
  (block) @body) @definition.media

(keyframes_statement
  (keyframes_name) @name
  (keyframe_block_list) @body) @definition.keyframes

(declaration
  (property_name) @name
  (#match? @name "^--")) @definition.variable
