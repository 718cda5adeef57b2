(section (atx_heading heading_content: (_) @name)) @scope
(section) @scope
(fenced_code_block (code_fence_content) @body) @scope
