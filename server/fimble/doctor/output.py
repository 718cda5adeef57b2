"""The text in what a program wrote, whatever its encoding, colours and wrapping.

Pure functions of bytes and text; what the text means is for the parsers.
"""

from __future__ import annotations

import codecs
import html
import re

__all__ = ["decode_output", "without_clixml"]

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
_CLIXML_MARK = "#< CLIXML"
_OBJECTS = re.compile(r"<Objs\b.*?(?:</Objs>|\Z)", re.DOTALL)
#: What PowerShell serialises as text, with the stream that it went to.
_STRINGS = re.compile(r"<S(?:\s+S=\"(?P<stream>\w+)\")?\s*>(?P<text>.*?)</S>", re.DOTALL)
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


def decode_output(data: bytes) -> str:
    """The text with ``\\n`` line ends and without terminal escapes; never fails.

    UTF-8 and UTF-16 with or without a mark; a legacy code page's letters become U+FFFD, which
    leaves ids, versions and numbers legible.
    """
    text = _decoded(data)
    text = _ESCAPES.sub("", text).replace("\0", "")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decoded(data: bytes) -> str:
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    # Latin text in UTF-16 without a mark: every second byte is zero.
    sample = data[:512]
    if len(sample) >= 4:
        zeros = [sample[start::2].count(0) * 2 for start in (0, 1)]
        for start, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
            if zeros[start] > 0.6 * len(sample) and zeros[1 - start] < 0.1 * len(sample):
                return data.decode(encoding, "replace")
    return data.decode("utf-8", "replace")


def without_clixml(text: str) -> str:
    """``text`` with PowerShell's serialised objects taken out, and what they say to people put
    in: output and errors, but neither progress nor verbose records.
    """
    if _CLIXML_MARK not in text:
        return text
    return _OBJECTS.sub(lambda found: _said(found[0]), text.replace(_CLIXML_MARK, ""))


def _said(objects: str) -> str:
    parts = []
    for found in _STRINGS.finditer(objects):
        if (found["stream"] or "Output").lower() in ("output", "error"):
            said = _ESCAPED.sub(lambda each: chr(int(each[1], 16)), html.unescape(found["text"]))
            parts.append(said.replace("\r\n", "\n"))
    return "\n".join(parts)
