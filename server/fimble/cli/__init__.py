"""The command line: what a user types, printed for people or, with ``--json``, for programs.

One module a command; each only reads arguments, calls the layer that does the work, and
prints. ``main`` turns every failure into a sentence and an exit code: 0 for success, 1 for
a failed run, 2 for bad usage.
"""

from fimble.cli.app import main

__all__ = ["main"]
