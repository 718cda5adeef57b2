(alias_name) @reference.name
