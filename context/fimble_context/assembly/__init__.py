"""Sections of a prompt within a budget of tokens: the text around a cursor and other places.

The uppermost folder. ``open_workspace`` brings everything together; what each section is for is
in ``sections``, what an edit needs in ``edit_context``.
"""

from fimble_context.assembly.assemble import assemble
from fimble_context.assembly.edit_context import Diagnostic, EditContext, edit_context
from fimble_context.assembly.open_workspace import Workspace
from fimble_context.assembly.sections import OTHER_KINDS, Context, LeftOut, Section
from fimble_context.assembly.selection import HEADING_TOKENS
from fimble_context.assembly.window import TokenCounter

__all__ = [
    "HEADING_TOKENS",
    "OTHER_KINDS",
    "Context",
    "Diagnostic",
    "EditContext",
    "LeftOut",
    "Section",
    "TokenCounter",
    "Workspace",
    "assemble",
    "edit_context",
]
