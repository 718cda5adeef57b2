"""The grid of a terminal program as a picture: SVG, in which the text stays text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

__all__ = ["BLANK", "Cell", "grid_as_svg"]

#: Pixels.
_WIDTH, _HEIGHT, _BASELINE, _MARGIN = 8.4, 18, 13.5, 10
_FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


class Cell(NamedTuple):
    """One place of the grid. ``style`` is a number of the program's; 0 is its default."""

    text: str
    style: int


BLANK = Cell(" ", 0)


def grid_as_svg(
    rows: Sequence[Sequence[Cell]], styles: Mapping[int, Mapping[str, Any]], cursor: tuple[int, int]
) -> str:
    """``styles`` are Neovim's highlight attributes, colours as 0xRRGGBB; 0 holds the default's."""
    width = len(rows[0]) * _WIDTH + 2 * _MARGIN
    height = len(rows) * _HEIGHT + 2 * _MARGIN
    plain = styles[0]
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}"'
        f' font-family="{_FONT}" font-size="14">',
        f'<rect width="100%" height="100%" rx="6" fill="{_colour(plain["background"])}"/>',
    ]
    for number, row in enumerate(rows):
        column = 0
        for style, run in groupby(row, key=lambda cell: cell.style):
            cells = list(run)
            place = (_MARGIN + column * _WIDTH, _MARGIN + number * _HEIGHT)
            drawn += _run(cells, {**plain, **styles.get(style, {})}, place, plain["background"])
            column += len(cells)
    x, y = _MARGIN + cursor[1] * _WIDTH, _MARGIN + cursor[0] * _HEIGHT
    fill = _colour(plain["foreground"])
    drawn.append(f'<rect x="{x:.1f}" y="{y}" width="2" height="{_HEIGHT}" fill="{fill}"/>')
    return "\n".join([*drawn, "</svg>", ""])


def _run(
    cells: Sequence[Cell], style: Mapping[str, Any], place: tuple[float, float], behind: int
) -> list[str]:
    """The elements for cells of one style."""
    front, back = style["foreground"], style["background"]
    if style.get("reverse"):
        front, back = back, front
    x, y = place
    drawn = []
    if back != behind:
        size = f'width="{len(cells) * _WIDTH:.1f}" height="{_HEIGHT}"'
        drawn.append(f'<rect x="{x:.1f}" y="{y:g}" {size} fill="{_colour(back)}"/>')
    text = "".join(cell.text for cell in cells)
    words = text.strip()
    if words:
        x += (len(text) - len(text.lstrip())) * _WIDTH
        weight = ' font-weight="bold"' if style.get("bold") else ""
        slope = ' font-style="italic"' if style.get("italic") else ""
        # Whatever font there is, a cell is as wide as a cell.
        drawn.append(
            f'<text x="{x:.1f}" y="{y + _BASELINE:g}" textLength="{len(words) * _WIDTH:.1f}"'
            f' xml:space="preserve" fill="{_colour(front)}"{weight}{slope}>{escape(words)}</text>'
        )
    return drawn


def _colour(value: int) -> str:
    return f"#{value:06x}"
