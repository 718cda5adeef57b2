"""What is known of a whole workspace: definitions, imports and likeness, kept on disk.

Made by a process of its own (``worker``), which ``supervisor`` keeps alive; ``workspace_index``
answers from what it has found. Knows ``workspace`` and ``syntax``, and of no prompt.
"""

from fimble_context.index.answers import Definition, IndexStatus
from fimble_context.index.facts import Fact, Facts
from fimble_context.index.lookup import Lookup
from fimble_context.index.workspace_index import WorkspaceIndex

__all__ = [
    "Definition",
    "Fact",
    "Facts",
    "IndexStatus",
    "Lookup",
    "WorkspaceIndex",
]
