(pair value: (object) @body) @scope
(pair value: (array) @body) @scope
