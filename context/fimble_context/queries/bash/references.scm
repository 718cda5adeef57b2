(command name: (command_name (word) @reference.call))
(variable_name) @reference.name
