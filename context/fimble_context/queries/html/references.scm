(attribute
  (attribute_name) @_class
  (quoted_attribute_value (attribute_value) @reference.name)
  (#any-of? @_class "class" "id" "for" "href"))
(tag_name) @reference.type
