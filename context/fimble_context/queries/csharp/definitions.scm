(class_declaration
  name: (identifier) @name
  body: (_)? @body) @definition.class

(struct_declaration
  name: (identifier) @name
  body: (_)? @body) @definition.struct

(record_declaration
  name: (identifier) @name
  body: (_)? @body) @definition.class

(interface_declaration
  name: (identifier) @name
  body: (_) @body) @definition.interface

(enum_declaration
  name: (identifier) @name
  body: (_) @body) @definition.enum

(enum_member_declaration name: (identifier) @name) @definition.member
(delegate_declaration name: (identifier) @name) @definition.type

(namespace_declaration
  name: (_) @name
  body: (_) @body) @definition.module

(file_scoped_namespace_declaration name: (_) @name) @definition.module

(method_declaration
  name: (identifier) @name
  body: (_)? @body) @definition.method

(local_function_statement
  name: (identifier) @name
  body: (_) @body) @definition.function

(constructor_declaration
  name: (identifier) @name
  body: (_)? @body) @definition.constructor

(property_declaration
  name: (identifier) @name
  value: (arrow_expression_clause)? @body) @definition.property

(field_declaration
  (variable_declaration
    (variable_declarator name: (identifier) @name))) @definition.field

(event_field_declaration
  (variable_declaration
    (variable_declarator name: (identifier) @name))) @definition.field
