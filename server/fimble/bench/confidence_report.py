"""Precision against coverage of the modes that have a confidence, as text and as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from fimble.bench.confidence import Point, best_threshold, points, separation
from fimble.bench.infill import Outcome
from fimble.bench.layouts import LAYOUTS

__all__ = ["confidence_json", "confidence_table"]

_SHOWN = tuple(number / 20 for number in range(0, 20))


def confidence_json(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """By mode: every threshold, the best one, and how well each measure tells right from wrong."""
    return {
        mode: {
            "cases": len(group),
            "points": [asdict(point) for point in points(group)],
            "best": asdict(best_threshold(group)),
            "separation": _separations(group),
        }
        for mode, group in _groups(outcomes)
    }


def confidence_table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The same as lines for people, with fewer thresholds."""
    for mode, group in _groups(outcomes):
        yield ""
        yield f"{mode}: {len(group)} places"
        yield "confidence  shown  right  coverage  precision  right kept  wrong dropped"
        best = best_threshold(group)
        rows = {point.threshold: point for point in (*points(group, _SHOWN), best)}
        shown = -1
        for threshold in sorted(rows):
            # A threshold that drops no more than the one above it says nothing.
            if rows[threshold].shown != shown or threshold == best.threshold:
                yield _line(rows[threshold]) + ("  best" if threshold == best.threshold else "")
            shown = rows[threshold].shown
        told = (
            f"{name} {'-' if value is None else format(value, '.2f')}"
            for name, value in _separations(group).items()
        )
        yield f"a right one has more than a wrong one, of {', '.join(told)} (0.5 is chance)"


def _groups(outcomes: Sequence[Outcome]) -> Iterator[tuple[str, list[Outcome]]]:
    for mode in LAYOUTS:
        group = [item for item in outcomes if item.mode == mode]
        if any(item.lowest is not None for item in group):
            yield mode, group


def _separations(group: Sequence[Outcome]) -> dict[str, float | None]:
    made = [item for item in group if item.lowest is not None and item.logprobs]
    measures: dict[str, list[tuple[bool, float]]] = {
        "lowest confidence": [(item.exact, item.lowest or 0.0) for item in made],
        "mean of the first line": [(i.exact, sum(i.logprobs) / len(i.logprobs)) for i in made],
        "first token": [(item.exact, item.logprobs[0]) for item in made],
        "least likely token": [(item.exact, min(item.logprobs)) for item in made],
        "sum": [(item.exact, sum(item.logprobs)) for item in made],
        "tokens": [(item.exact, float(len(item.logprobs))) for item in made],
    }
    return {
        name: separation(
            [value for exact, value in values if exact],
            [value for exact, value in values if not exact],
        )
        for name, values in measures.items()
    }


def _line(point: Point) -> str:
    return (
        f"{point.threshold:10.2f}  {point.shown:5}  {point.right:5}  {point.coverage:8.1%}  "
        f"{point.precision:9.1%}  {point.kept:10.1%}  {point.dropped:13.1%}"
    )
