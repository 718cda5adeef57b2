(interface_body) @block
(enum_body) @items
(object_type) @items
(type_arguments) @items
(type_parameters) @items
