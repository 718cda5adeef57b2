(create_table
  (object_reference name: (_) @name)
  (column_definitions)? @body) @definition.table
(column_definition name: (identifier) @name) @definition.column
(create_view
  (object_reference name: (_) @name)
  (create_query) @body) @definition.view
(create_function
  (object_reference name: (_) @name)
  (function_body) @body) @definition.function
(create_type (object_reference name: (_) @name)) @definition.type
(create_index column: (identifier) @name) @definition.index
(create_trigger . (object_reference name: (_) @name)) @definition.trigger
(cte (identifier) @name) @definition.view
