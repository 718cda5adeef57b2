"""How the sections of a context become a prompt for Qwen2.5-Coder.

The only place that knows the order of control tokens. Text stays text: whatever it spells,
it never becomes a control token (see ``engine.protocol``).
"""

from __future__ import annotations

from fimble.engine.protocol import Control, Segment, Text
from fimble_context.assembly import OTHER_KINDS, Context

__all__ = ["LAYOUT_TOKENS", "completion_prompt", "prompt_text"]

#: Control tokens that ``completion_prompt`` adds to the tokens of the sections, whose
#: headings (``repo_name``, ``file_sep`` and paths) are counted with them.
LAYOUT_TOKENS = 3


def completion_prompt(context: Context) -> tuple[Segment, ...]:
    """Other files by their paths, then prefix, suffix, middle of the file at the cursor.

    The model goes on with what belongs between prefix and suffix. Without sections of other
    files, the file's path is left out as well.
    """
    others = [part for part in context.sections if part.kind in OTHER_KINDS]
    own = [part for part in context.sections if part.kind not in OTHER_KINDS]
    suffix = "".join(part.text for part in own if part.kind == "suffix")
    # What is not the suffix stands in front of it, in the order of the sections.
    prefix = "".join(part.text for part in own if part.kind != "suffix")
    segments: list[Segment] = []
    if others:
        segments += (Control("repo_name"), Text(prompt_text(f"{context.repository}\n")))
        for part in others:
            segments += (Control("file_sep"), Text(prompt_text(f"{part.path}\n{part.text}")))
        segments += (Control("file_sep"), Text(prompt_text(f"{own[0].path}\n")))
    return (
        *segments,
        Control("fim_prefix"),
        Text(prompt_text(prefix)),
        Control("fim_suffix"),
        Text(prompt_text(suffix)),
        Control("fim_middle"),
    )


def prompt_text(text: str) -> str:
    """``text`` as a prompt has it: ``\\n`` line ends, and nothing that UTF-8 cannot hold.

    A model sees the same code whatever the file's line ends are. Editors can send half a
    surrogate pair; two halves side by side are joined, a lone one becomes U+FFFD.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
