(element (start_tag (tag_name) @name)) @scope
(script_element (raw_text) @body) @scope
(style_element (raw_text) @body) @scope
