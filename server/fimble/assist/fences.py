"""Markdown's fenced code blocks, whatever fences are in the code."""

from __future__ import annotations

__all__ = ["fence_for", "fenced"]


def fence_for(text: str) -> str:
    """A Markdown fence that no line of ``text`` can close: three backticks or more."""
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return "`" * max(3, longest + 1)


def fenced(text: str, language: str = "") -> str:
    """``text`` as a fenced code block of Markdown, whatever fences are in it."""
    fence = fence_for(text)
    end = "" if text.endswith("\n") or not text else "\n"
    return f"{fence}{language}\n{text}{end}{fence}"
