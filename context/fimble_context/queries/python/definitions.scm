(decorated_definition) @wrapper

(function_definition
  name: (identifier) @name
  body: (block) @body) @definition.function

(class_definition
  name: (identifier) @name
  body: (block) @body) @definition.class

(type_alias_statement
  left: (type (identifier) @name)) @definition.type

(module
  (expression_statement
    (assignment left: (identifier) @name) @definition.constant)
  (#match? @name "^_*[A-Z][A-Z0-9_]*$"))

(module
  (expression_statement
    (assignment left: (identifier) @name) @definition.variable))

(class_definition
  body: (block
    (expression_statement
      (assignment left: (identifier) @name) @definition.field)))

; Attributes are defined where __init__ assigns them.
(function_definition
  name: (identifier) @_init
  body: (block
    (expression_statement
      (assignment
        left: (attribute
          object: (identifier) @_self
          attribute: (identifier) @name)) @definition.field))
  (#eq? @_init "__init__")
  (#eq? @_self "self"))

(function_definition
  body: (block . (expression_statement (string) @doc))) @documented

(class_definition
  body: (block . (expression_statement (string) @doc))) @documented
