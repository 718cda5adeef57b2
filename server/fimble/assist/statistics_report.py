"""What the stored numbers say, put together for people and programs. Knows no disk."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from fimble.assist.histogram import percentile
from fimble.assist.outcomes import KEPT_AFTER_SECONDS
from fimble.assist.statistics import Key

__all__ = ["report"]


def report(numbers: Mapping[Key, int]) -> dict[str, Any]:
    """The sums in all, by model, by language and by day, in JSON's terms.

    ``{"total": S, "by_model": {name: S}, "by_language": {id: S}, "by_day": {date: S}}``;
    each S is what ``_sums`` gives.
    """
    return {
        "total": _sums(numbers),
        "by_model": _grouped(numbers, lambda key: key.model),
        "by_language": _grouped(numbers, lambda key: key.language),
        "by_day": _grouped(numbers, lambda key: key.day),
    }


def _grouped(numbers: Mapping[Key, int], of: Callable[[Key], str]) -> dict[str, Any]:
    groups: defaultdict[str, dict[Key, int]] = defaultdict(dict)
    for key, number in numbers.items():
        groups[of(key)][key] = number
    return {name: _sums(groups[name]) for name in sorted(groups)}


def _sums(numbers: Mapping[Key, int]) -> dict[str, Any]:
    """Counts by what they are of. Latencies are milliseconds, null where none was measured."""
    by_measure: Counter[str] = Counter()
    histograms: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for key, number in numbers.items():
        by_measure[key.measure] += number
        histograms[key.measure][key.bucket] += number
    return {
        "shown": by_measure["shown"],
        "accepted": by_measure["accepted"],
        "partially_accepted": {
            "suggestions": by_measure["partially_accepted"],
            "words": by_measure["partial_words"],
            "lines": by_measure["partial_lines"],
        },
        "typed": by_measure["typed"],
        "dismissed": by_measure["dismissed"],
        "kept": {
            "after_seconds": int(KEPT_AFTER_SECONDS),
            "measured": by_measure["kept_measured"],
            "unchanged": by_measure["kept_unchanged"],
            "mostly": by_measure["kept_mostly"],
        },
        "answers": {
            "memory": by_measure["from_memory"],
            "ahead": by_measure["from_ahead"],
            "engine": by_measure["from_engine"],
        },
        "latency_ms": {
            "keystroke": _latency(histograms["keystroke_ms"]),
            "request": _latency(histograms["request_ms"]),
        },
        "model_calls": by_measure["model_calls"],
        "prompt_tokens": {
            "computed": by_measure["computed_tokens"],
            "reused": by_measure["reused_tokens"],
        },
    }


def _latency(histogram: Mapping[int, int]) -> dict[str, Any]:
    return {
        "count": sum(histogram.values()),
        "p50": _rounded(percentile(histogram, 0.5)),
        "p95": _rounded(percentile(histogram, 0.95)),
    }


def _rounded(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else round(milliseconds, 1)
