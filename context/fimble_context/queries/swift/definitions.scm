(class_declaration
  "struct"
  name: (_) @name
  body: (_) @body) @definition.struct

(class_declaration
  "enum"
  name: (_) @name
  body: (_) @body) @definition.enum

(class_declaration
  "extension"
  name: (_) @name
  body: (_) @body) @definition.impl

(class_declaration
  name: (_) @name
  body: (_) @body) @definition.class

(protocol_declaration
  name: (_) @name
  body: (_) @body) @definition.interface

(enum_entry name: (simple_identifier) @name) @definition.member

; Naming a child of a function takes tree-sitter half a second here; the fields will do.
(function_declaration) @definition.function
(protocol_function_declaration) @definition.method

(init_declaration
  "init" @name
  body: (_)? @body) @definition.constructor

(typealias_declaration name: (type_identifier) @name) @definition.type

(source_file
  (property_declaration
    name: (pattern bound_identifier: (simple_identifier) @name)) @definition.variable)

(class_body
  (property_declaration
    name: (pattern bound_identifier: (simple_identifier) @name)
    computed_value: (_)? @body) @definition.property)

(protocol_property_declaration
  name: (pattern bound_identifier: (simple_identifier) @name)) @definition.property
