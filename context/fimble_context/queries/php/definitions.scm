(namespace_definition
  name: (_) @name
  body: (compound_statement)? @body) @definition.module

(class_declaration
  name: (name) @name
  body: (_) @body) @definition.class

(interface_declaration
  name: (name) @name
  body: (_) @body) @definition.interface

(trait_declaration
  name: (name) @name
  body: (_) @body) @definition.class

(enum_declaration
  name: (name) @name
  body: (_) @body) @definition.enum

(enum_case name: (name) @name) @definition.member

(function_definition
  name: (name) @name
  body: (_) @body) @definition.function

(method_declaration
  name: (name) @name
  body: (_)? @body) @definition.method

(property_declaration
  (property_element name: (variable_name (name) @name))) @definition.field

(const_declaration (const_element . (name) @name)) @definition.constant
