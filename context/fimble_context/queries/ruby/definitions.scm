(module
  name: (_) @name
  body: (body_statement)? @body) @definition.module

(class
  name: (_) @name
  body: (body_statement)? @body) @definition.class

(method
  name: (_) @name
  body: (_)? @body) @definition.method

(singleton_method
  name: (_) @name
  body: (_)? @body) @definition.method

(assignment left: (constant) @name) @definition.constant
(alias name: (_) @name) @definition.method

(call
  method: (identifier) @_accessor
  arguments: (argument_list (simple_symbol) @name)
  (#any-of? @_accessor "attr_accessor" "attr_reader" "attr_writer")) @definition.field
