"""An answer in the document's manner: what of it is written otherwise than the model wrote it.

A fence in front of the code and indentation that the line has already are left out; tabs and
spaces are those of the document. An answer is remembered in this form, which is the one that
is inserted: so what is typed through, deleted back into or accepted in part is found again.
"""

from __future__ import annotations

from fimble.assist.cleaning import may_have_fences
from fimble.assist.fit import badness
from fimble.assist.indentation import indent_unit, spaces_a_level, with_spaces, with_tabs
from fimble.assist.place import Place

__all__ = ["Manner"]

_FENCES = ("```", "~~~")
_BLANK = " \t"
#: A line that ends so has the next one a level deeper.
_OPENERS = (":", "{", "(", "[")


class Manner:
    """Rewrites one answer at ``place`` while it grows.

    What was decided stays: for every more of an answer that it is given, the result begins
    with the former one. What cannot be decided yet is held back.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._front: int | None = None
        self._unit: str | None = None
        self._unit_known = False
        self._width = 0

    def of(self, answer: str, *, complete: bool = True) -> str:
        """The answer as far as it has come, with ``\\n`` line ends.

        ``complete`` says that no more will come.
        """
        if not complete:
            answer = answer.removesuffix("\r")  # its "\\n" may be yet to come
        text = answer.replace("\r\n", "\n").replace("\r", "\n")
        if self._front is None:
            self._front = self._front_of(text, complete)
        return "" if self._front is None else self._indented(text[self._front :], complete)

    # --- the beginning -------------------------------------------------------------------

    def _front_of(self, text: str, complete: bool) -> int | None:
        """How much is left out in front; None where it cannot be told yet."""
        start = self._fence_end(text, complete)
        if start is None:
            return None
        place, (line, newline, _) = self._place, text[start:].partition("\n")
        if not place.before or place.before.strip():
            return start
        bare = line.lstrip(_BLANK)
        if bare == line and line:
            return start
        if not newline and not complete:
            return None
        fits = bool(bare) and badness(place, bare) <= badness(place, line)
        return start + len(line) - len(bare) if fits else start

    def _fence_end(self, text: str, complete: bool) -> int | None:
        """Where the line of a fence in front ends; 0 without one, None if there may be one."""
        if not may_have_fences(self._place):
            return 0
        begin = len(text) - len(text.lstrip(_BLANK + "\n"))
        if "\n" in text[:begin] and self._place.shape == "line":
            return 0  # nothing beyond is shown
        head = text[begin : begin + 3]
        if head in _FENCES:
            newline = text.find("\n", begin)
            if newline >= 0:
                return newline + 1
            return len(text) if complete else None
        undecided = any(fence.startswith(head) for fence in _FENCES)
        return None if undecided and not complete else 0

    # --- indentation ---------------------------------------------------------------------

    def _indented(self, text: str, complete: bool) -> str:
        """``text`` with the document's indentation; its first line only if it begins one."""
        first = 1 if self._place.before else 0
        lines = text.split("\n")
        unit = self._indent_unit() if len(lines) > first else None
        if unit is None:
            return text
        last = len(lines) - 1
        if not complete and _may_change(lines[last], unit):
            lines[last] = ""
        for number in range(first, len(lines)):
            lines[number] = self._rewritten(lines, number, unit)
        return "\n".join(lines)

    def _rewritten(self, lines: list[str], number: int, unit: str) -> str:
        line = lines[number]
        if unit != "\t":
            return with_spaces(line, unit)
        spaces = len(line) - len(line.lstrip(" "))
        if spaces < 2 or not line.strip():
            return line
        if not self._width:
            self._width = spaces_a_level(spaces, self._levels(lines[:number]))
        return with_tabs(line, self._width)

    def _levels(self, above: list[str]) -> tuple[int, ...]:
        """How deep the line below ``above`` may be, in levels, the likeliest first."""
        before = self._place.before
        own = before[: len(before) - len(before.lstrip(_BLANK))].count("\t")
        line = next((line for line in reversed(above) if line.strip()), before)
        return (own + 1, own) if line.rstrip().endswith(_OPENERS) else (own, own + 1)

    def _indent_unit(self) -> str | None:
        if not self._unit_known:
            self._unit = indent_unit(self._place.document, self._place.offset)
            self._unit_known = True
        return self._unit


def _may_change(line: str, unit: str) -> bool:
    """Whether a line is white space so far, with some of the kind that is replaced."""
    return not line.strip(_BLANK) and (" " if unit == "\t" else "\t") in line
