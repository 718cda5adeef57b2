(create_table (column_definitions) @body) @scope
(create_function (function_body) @body) @scope
(create_view (create_query) @body) @scope
(statement) @scope
