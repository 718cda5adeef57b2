(ambient_declaration) @wrapper

(abstract_class_declaration
  name: (_) @name
  body: (class_body) @body) @definition.class

(interface_declaration
  name: (_) @name
  body: (interface_body) @body) @definition.interface

(enum_declaration
  name: (_) @name
  body: (enum_body) @body) @definition.enum

(enum_body (property_identifier) @name @definition.member)
(enum_assignment name: (_) @name) @definition.member
(type_alias_declaration name: (_) @name) @definition.type

(internal_module
  name: (_) @name
  body: (statement_block) @body) @definition.module

(module
  name: (_) @name
  body: (statement_block) @body) @definition.module

(function_signature name: (_) @name) @definition.function
(method_signature name: (_) @name) @definition.method
(abstract_method_signature name: (_) @name) @definition.method
(property_signature name: (_) @name) @definition.field
(public_field_definition name: (_) @name) @definition.field
