(call_expression function: (identifier) @reference.call)
(call_expression
  function: (member_expression property: (property_identifier) @reference.call))
(new_expression constructor: (identifier) @reference.type)
(identifier) @reference.name
(shorthand_property_identifier) @reference.name
