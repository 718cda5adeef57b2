"""fimble: a coding assistant over the Language Server Protocol, on the user's own machine."""

__version__ = "0.1.0"
