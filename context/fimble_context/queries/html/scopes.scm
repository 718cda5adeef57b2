(element) @scope
(script_element (raw_text) @body) @scope
(style_element (raw_text) @body) @scope
