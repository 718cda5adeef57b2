(table) @scope
(table_array_element) @scope
