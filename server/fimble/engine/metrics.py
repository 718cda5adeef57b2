"""Counts of what the engine did, and their Prometheus text.

Plain numbers that the worker adds to and the service reads; knows nothing of either.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["Metrics", "prometheus_text"]


@dataclass
class Metrics:
    """Tokens are counted when they are computed, not when an answer ends."""

    reused_tokens: int = 0
    computed_tokens: int = 0
    generated_tokens: int = 0
    load_seconds: float = 0.0
    loads: int = 0
    #: What was given back since the machine ran short of memory: "slots" and "models".
    freed: Counter[str] = field(default_factory=Counter)
    #: Ended requests by "stop", "length", "cancelled" or "error".
    requests: Counter[str] = field(default_factory=Counter)


def prometheus_text(metrics: Metrics, gauges: dict[str, float]) -> str:
    """Text exposition format 0.0.4. ``gauges`` are further values by name, with no prefix."""
    lines: list[str] = []
    counters = {
        "prompt_tokens_reused_total": ("Prompt tokens found in a KV cache", metrics.reused_tokens),
        "prompt_tokens_computed_total": ("Prompt tokens computed", metrics.computed_tokens),
        "generated_tokens_total": ("Tokens generated", metrics.generated_tokens),
        "model_loads_total": ("Models loaded", metrics.loads),
    }
    for name, (meaning, value) in counters.items():
        lines += [f"# HELP fimble_{name} {meaning}", f"# TYPE fimble_{name} counter"]
        lines.append(f"fimble_{name} {value}")
    lines += [
        "# HELP fimble_requests_total Ended requests by how they ended",
        "# TYPE fimble_requests_total counter",
    ]
    for reason in ("stop", "length", "cancelled", "error"):
        lines.append(f'fimble_requests_total{{end="{reason}"}} {metrics.requests[reason]}')
    lines += [
        "# HELP fimble_freed_total What was given back since the machine ran short of memory",
        "# TYPE fimble_freed_total counter",
    ]
    for what in ("slots", "models"):
        lines.append(f'fimble_freed_total{{what="{what}"}} {metrics.freed[what]}')
    for name, gauge in {**gauges, "model_load_seconds": metrics.load_seconds}.items():
        lines.append(f"# TYPE fimble_{name} gauge")
        lines.append(f"fimble_{name} {gauge:g}")
    return "\n".join(lines) + "\n"
