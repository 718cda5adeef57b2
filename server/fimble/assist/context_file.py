"""What a prompt for a place in a file on disk would be made of, without a model.

Lines and columns are one-based and count characters (code points), as editors show them.
Tokens are estimated: UTF-8 bytes divided by three, which is a little more than a model counts.
"""

from __future__ import annotations

from pathlib import Path

from fimble.assist.complete_file import (
    indexed_workspace,
    offset_of_place,
    read_document,
    refuse_secrets,
)
from fimble.assist.prompt import own_text_only
from fimble.assist.tokens import TokenCounts
from fimble.assist.workspace import assemble_in, project_root
from fimble_context.assembly import Context
from fimble_context.workspace import Policy

__all__ = ["context_in_file"]


def context_in_file(path: Path, line: int, column: int, budget: int) -> Context:
    """The sections for a place within ``budget`` estimated tokens.

    Other files of the project are taken into account as far as they are indexed within some
    seconds. Raises ``DocumentError`` for a file or position that cannot be used.
    """
    path = path.absolute()
    document = read_document(path)
    offset = offset_of_place(document, path, line, column)
    root = project_root(path)
    refuse_secrets(path, document, Policy(() if root is None else (root,)))
    count = TokenCounts().with_estimates
    if root is None:
        return own_text_only(document, offset, budget, count)
    workspace = indexed_workspace(root, path, document)
    try:
        return assemble_in(workspace)(document, offset, budget, count)
    finally:
        workspace.close()
