(pair
  key: (string (string_content) @name)
  value: (object) @body) @definition.key
(pair
  key: (string (string_content) @name)
  value: (array) @body) @definition.key
(pair key: (string (string_content) @name)) @definition.key
