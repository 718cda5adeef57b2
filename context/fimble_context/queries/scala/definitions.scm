(class_definition
  name: (_) @name
  body: (_)? @body) @definition.class

(trait_definition
  name: (_) @name
  body: (_)? @body) @definition.interface

(object_definition
  name: (_) @name
  body: (_)? @body) @definition.class

(enum_definition
  name: (_) @name
  body: (_) @body) @definition.enum

(simple_enum_case name: (_) @name) @definition.member
(full_enum_case name: (_) @name) @definition.member

(function_definition
  name: (_) @name
  body: (_) @body) @definition.function

(function_declaration name: (_) @name) @definition.function
(type_definition name: (_) @name) @definition.type
(given_definition name: (_) @name body: (_)? @body) @definition.variable
(compilation_unit (val_definition pattern: (identifier) @name) @definition.variable)
(compilation_unit (var_definition pattern: (identifier) @name) @definition.variable)
(template_body (val_definition pattern: (identifier) @name) @definition.field)
(template_body (var_definition pattern: (identifier) @name) @definition.field)
(template_body (val_declaration name: (identifier) @name) @definition.field)
