((class_declaration
  name: (identifier) @name
  [(class_body) (enum_class_body)] @body) @definition.interface
  (#match? @definition.interface "^((public|private|internal|sealed|fun|expect|actual)\\s+)*interface"))

(class_declaration
  name: (identifier) @name
  (enum_class_body) @body) @definition.enum

(class_declaration
  name: (identifier) @name
  (class_body)? @body) @definition.class

(object_declaration
  name: (identifier) @name
  (class_body)? @body) @definition.class

(enum_entry . (identifier) @name) @definition.member

(function_declaration
  name: (identifier) @name
  (function_body)? @body) @definition.function

(type_alias type: (identifier) @name) @definition.type

(source_file
  (property_declaration
    (variable_declaration . (identifier) @name)) @definition.variable)

(class_body
  (property_declaration
    (variable_declaration . (identifier) @name)) @definition.property)
