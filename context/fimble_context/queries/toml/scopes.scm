(table . (_) @name) @scope
(table_array_element . (_) @name) @scope
