(raw_string_literal) @string
