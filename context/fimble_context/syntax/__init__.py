"""What a text says by itself: documents, positions, languages and what their syntax tells.

The lowest folder: knows one text at a time, no file, no workspace and no prompt. Parsing never
fails: broken code gives fewer names and wider pieces, not an error.
"""

from fimble_context.syntax.comments import text_kind
from fimble_context.syntax.document import Document, Edit
from fimble_context.syntax.languages import LANGUAGES, Language, detect, prepare
from fimble_context.syntax.names import Import, Reference, imports, references
from fimble_context.syntax.positions import Encoding, Position
from fimble_context.syntax.scopes import Scope, enclosing_scopes
from fimble_context.syntax.spans import (
    CutPoint,
    Span,
    cut_points,
    enclosing_node,
    enclosing_statements,
    error_count,
)
from fimble_context.syntax.symbols import Symbol, outline, symbols_at, walk

__all__ = [
    "LANGUAGES",
    "CutPoint",
    "Document",
    "Edit",
    "Encoding",
    "Import",
    "Language",
    "Position",
    "Reference",
    "Scope",
    "Span",
    "Symbol",
    "cut_points",
    "detect",
    "enclosing_node",
    "enclosing_scopes",
    "enclosing_statements",
    "error_count",
    "imports",
    "outline",
    "prepare",
    "references",
    "symbols_at",
    "text_kind",
    "walk",
]
