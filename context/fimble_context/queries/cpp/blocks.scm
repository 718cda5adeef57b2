(template_argument_list) @items
(template_parameter_list) @items
