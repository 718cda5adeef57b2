(function_definition
  declarator: (_) @declarator
  body: (compound_statement) @body) @definition.function

(declaration
  declarator: (function_declarator) @declarator) @definition.function
(declaration
  declarator: (pointer_declarator
    declarator: (function_declarator)) @declarator) @definition.function

(struct_specifier
  name: (type_identifier) @name
  body: (field_declaration_list) @body) @definition.struct

(union_specifier
  name: (type_identifier) @name
  body: (field_declaration_list) @body) @definition.struct

(enum_specifier
  name: (type_identifier) @name
  body: (enumerator_list) @body) @definition.enum

(enumerator name: (identifier) @name) @definition.member

(type_definition
  type: [
    (struct_specifier body: (_) @body)
    (union_specifier body: (_) @body)
    (enum_specifier body: (_) @body)
  ]
  declarator: (type_identifier) @name) @definition.struct

(type_definition
  declarator: (_) @declarator) @definition.type

(field_declaration
  declarator: (_) @declarator) @definition.field

(preproc_def name: (identifier) @name) @definition.constant
(preproc_function_def name: (identifier) @name) @definition.macro

(translation_unit
  (declaration
    declarator: (_) @declarator) @definition.variable)
