"""What an editor says of itself beyond the protocol: ``experimental`` capabilities of ours."""

from __future__ import annotations

from lsprotocol import types

from fimble.lsp.chat_params import plain

__all__ = ["is_experimental"]


def is_experimental(capabilities: types.ClientCapabilities, name: str) -> bool:
    """Whether the editor's ``experimental`` has ``{"fimble": {name: true}}``."""
    experimental = plain(capabilities.experimental)
    ours = experimental.get("fimble") if isinstance(experimental, dict) else None
    return isinstance(ours, dict) and ours.get(name) is True
