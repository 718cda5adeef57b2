(section) @scope
(fenced_code_block (code_fence_content) @body) @scope
