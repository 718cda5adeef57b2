"""Why there is no release."""

from __future__ import annotations

__all__ = ["ReleaseRefused"]


class ReleaseRefused(Exception):
    """The message names the thing and the next step."""
