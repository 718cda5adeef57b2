(template_declaration) @wrapper

(class_specifier
  name: (_) @name
  body: (field_declaration_list) @body) @definition.class

(struct_specifier
  name: (template_type) @name
  body: (field_declaration_list) @body) @definition.struct

(namespace_definition
  name: (_) @name
  body: (declaration_list) @body) @definition.module

(alias_declaration name: (type_identifier) @name) @definition.type
(concept_definition name: (identifier) @name) @definition.type

(namespace_definition
  body: (declaration_list
    (declaration declarator: (_) @declarator) @definition.variable))
; Defaulted and deleted functions have no body.
(function_definition declarator: (_) @declarator) @definition.function
