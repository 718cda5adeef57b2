(function_declaration
  name: (identifier) @name
  body: (block)? @body) @definition.function

(method_declaration
  name: (field_identifier) @name
  body: (block)? @body) @definition.method

(type_declaration
  "type"
  .
  (type_spec
    name: (type_identifier) @name
    type: (struct_type (field_declaration_list) @body))) @definition.struct

(type_declaration
  "type"
  .
  (type_spec
    name: (type_identifier) @name
    type: (interface_type) @body)) @definition.interface

(type_declaration "type" . (type_spec name: (type_identifier) @name)) @definition.type
(type_declaration "type" . (type_alias name: (type_identifier) @name)) @definition.type

; In a group each type is a definition of its own.
(type_declaration
  "("
  (type_spec
    name: (type_identifier) @name
    type: (struct_type (field_declaration_list) @body)) @definition.struct)

(type_declaration
  "("
  (type_spec
    name: (type_identifier) @name
    type: (interface_type) @body) @definition.interface)

(type_declaration "(" (type_spec name: (type_identifier) @name) @definition.type)

(field_declaration name: (field_identifier) @name) @definition.field
(field_declaration type: (type_identifier) @name !name) @definition.field
(method_elem name: (field_identifier) @name) @definition.method

(source_file
  (const_declaration
    "const"
    .
    (const_spec name: (identifier) @name)) @definition.constant)
(source_file
  (const_declaration
    "("
    (const_spec name: (identifier) @name) @definition.constant))
(source_file
  (var_declaration
    "var"
    .
    (var_spec name: (identifier) @name)) @definition.variable)
(source_file
  (var_declaration
    (var_spec_list
      (var_spec name: (identifier) @name) @definition.variable)))
