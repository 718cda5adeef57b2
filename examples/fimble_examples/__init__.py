"""Small real programs that `fimble demo` and the tests complete code in."""
