"""The files of a workspace: which there are, which may be used, where imports lead.

Knows ``syntax``; nothing is remembered here about what a file defines, and nothing is chosen.
"""

from fimble_context.workspace.files import Limits, SourceFile, read
from fimble_context.workspace.ignore import Policy, Refusal
from fimble_context.workspace.secrets import has_private_key, mask_secrets
from fimble_context.workspace.walk import Walk

__all__ = [
    "Limits",
    "Policy",
    "Refusal",
    "SourceFile",
    "Walk",
    "has_private_key",
    "mask_secrets",
    "read",
]
