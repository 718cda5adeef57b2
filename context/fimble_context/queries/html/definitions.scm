(element
  (start_tag
    (attribute
      (attribute_name) @_id
      [
        (quoted_attribute_value (attribute_value) @name)
        (attribute_value) @name
      ]))
  (#eq? @_id "id")) @definition.element

(element
  [
    (start_tag (tag_name) @name)
    (self_closing_tag (tag_name) @name)
  ]
  (#match? @name "^(h[1-6]|title|main|nav|header|footer|section|article|form|template|[a-z]+-[a-z-]+)$")) @definition.element
