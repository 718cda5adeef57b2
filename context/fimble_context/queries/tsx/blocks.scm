(jsx_element) @items
