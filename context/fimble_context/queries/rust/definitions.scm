(function_item
  name: (identifier) @name
  body: (block) @body) @definition.function

(function_signature_item name: (identifier) @name) @definition.function

(struct_item
  name: (type_identifier) @name
  body: (field_declaration_list)? @body) @definition.struct

(union_item
  name: (type_identifier) @name
  body: (field_declaration_list) @body) @definition.struct

(enum_item
  name: (type_identifier) @name
  body: (enum_variant_list) @body) @definition.enum

(enum_variant name: (identifier) @name) @definition.member
(field_declaration name: (field_identifier) @name) @definition.field

(trait_item
  name: (type_identifier) @name
  body: (declaration_list) @body) @definition.interface

(impl_item
  type: (_) @name
  body: (declaration_list) @body) @definition.impl

(mod_item
  name: (identifier) @name
  body: (declaration_list)? @body) @definition.module

(macro_definition name: (identifier) @name) @definition.macro
(type_item name: (type_identifier) @name) @definition.type
(const_item name: (identifier) @name) @definition.constant
(static_item name: (identifier) @name) @definition.variable
