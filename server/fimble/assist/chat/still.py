"""An answer as a document that loads nothing and leads nowhere but to pages.

Editors show what we keep with their own Markdown, some as a page: an image would tell its server
what stands in its address, and a link may be a command of the editor's. What could do so outside
of code blocks is spelled by entities there, which people read as the same text.
"""

from __future__ import annotations

import html
import re

from fimble.assist.chat.blocks import code_blocks

__all__ = ["still"]

_SCHEMES = ("http", "https", "mailto")
#: What may stand in front of a block's text: indentation, quotes, bullets and numbers.
_BEGIN = r"^(?P<begin>[ \t>*+\-\d.)]*)"
_TAGS = (
    "a|applet|audio|base|body|button|embed|form|frame|head|iframe|image|img|input|link|math|meta|"
    "object|picture|script|source|style|svg|track|video"
)
_SPELLED = (
    (re.compile(r"!(?=\[)"), "&#33;"),
    (re.compile(rf"<(?=\s*/?(?:{_TAGS})(?:[\s/>]|$))", re.IGNORECASE), "&lt;"),
    # A line that begins with a tag begins HTML, with no Markdown in it.
    (re.compile(_BEGIN + r"<(?=[A-Za-z/!?])", re.MULTILINE), r"\g<begin>&lt;"),
    (re.compile(r"<(?=(?!https?:|mailto:)[A-Za-z][\w+.\-]*:(?!:))", re.IGNORECASE), "&lt;"),
    # Where a link is defined apart from its words.
    (re.compile(_BEGIN + r"\[(?=[^\]\n]*\]:)", re.MULTILINE), r"\g<begin>&#91;"),
)
_LINK = re.compile(r"\](?=\(\s*<?(?P<target>[^\s)>]*))")


def still(answer: str) -> str:
    """``answer`` without images, HTML, and links to anything but pages; its code is as it was."""
    parts, position = [], 0
    for block in code_blocks(answer):
        parts += [_spelled(answer[position : block.start]), answer[block.start : block.end]]
        position = block.end
    return "".join([*parts, _spelled(answer[position:])])


def _spelled(text: str) -> str:
    for pattern, instead in _SPELLED:
        text = pattern.sub(instead, text)
    return _LINK.sub(lambda link: "]" if _is_page(link["target"]) else "&#93;", text)


def _is_page(target: str) -> bool:
    """Whether a link leads to a page, or to nothing outside of the document."""
    meant = html.unescape(target).replace("\\", "")
    scheme = re.match(r"([A-Za-z][\w+.\-]*):", meant)
    return scheme is None or scheme[1].lower() in _SCHEMES
