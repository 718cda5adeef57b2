(link_label) @reference.name
