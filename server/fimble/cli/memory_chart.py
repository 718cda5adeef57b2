"""Memory against context length, as bars in the terminal or as a picture in a PNG file.

Draws what a report says; computes no plan.
"""

from __future__ import annotations

from pathlib import Path

from fimble.cli.output import byte_size
from fimble.errors import FimbleError, UsageError
from fimble.models.memory_plan import kv_bytes, total_bytes
from fimble.models.report import ModelReport, plan_lengths

__all__ = ["chart_lines", "save_chart"]

_LABEL = 9
_SIZE = 11


def chart_lines(report: ModelReport, width: int = 80) -> list[str]:
    """A bar for each length: weights and the rest (█), KV caches (▒), where memory ends (│).

    ``width`` is in columns; no line is longer.
    """
    plan, free = report.plan, report.memory.free
    lengths = plan_lengths(plan)
    if not lengths:
        return []
    largest = max(total_bytes(plan.need, lengths[-1], plan.slots), 1)
    # Free memory that is far beyond the largest bar would squeeze the bars to nothing.
    scale = max(largest, min(free, largest * 5 // 4))
    columns = max(10, width - _LABEL - _SIZE - 4)
    limit = free * columns // scale if free <= scale else None
    lines = []
    for tokens in lengths:
        total = total_bytes(plan.need, tokens, plan.slots)
        fixed = plan.need.weights + plan.need.working
        filled = -(-total * columns // scale)
        solid = min(filled, fixed * columns // scale)
        bar = list("█" * solid + "▒" * (filled - solid) + " " * (columns - filled))
        if limit is not None and limit < columns:
            bar[limit] = "│"
        mark = "◀" if tokens == plan.max_length else " "
        lines.append(
            f"{tokens:>{_LABEL},} {''.join(bar)} {byte_size(total):>{_SIZE}} {mark}".rstrip()
        )
    end = "│ " if limit is not None else ""
    lines.append(f"{'':{_LABEL}} █ weights and working memory   ▒ KV caches of {plan.slots} slots")
    lines.append(f"{'':{_LABEL}} {end}{byte_size(free)} free {report.memory.source}"[:width])
    return lines


def save_chart(report: ModelReport, path: Path) -> None:
    """Writes the same as a PNG. UsageError for another ending, FimbleError without matplotlib."""
    if path.suffix.lower() != ".png":
        raise UsageError(f"{path} is not a .png file.", next_step="Give a name that ends in .png.")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise FimbleError(
            "matplotlib, which draws the picture, is not installed.",
            next_step="Run `pip install 'fimble[plot]'`, or leave out --plot: the terminal has "
            "the same chart.",
        ) from error
    plan, found = report.plan, report.inspection
    lengths = plan_lengths(plan)
    gib = 1 << 30
    fixed = (plan.need.weights + plan.need.working) / gib
    caches = [kv_bytes(plan.need, tokens, plan.slots) / gib for tokens in lengths]
    names = [f"{tokens:,}" for tokens in lengths]
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    axes.bar(names, [fixed] * len(lengths), label="weights and working memory", color="#4a6fa5")
    axes.bar(names, caches, bottom=fixed, label=f"KV cache × {plan.slots}", color="#e0a458")
    axes.axhline(
        report.memory.free / gib,
        color="#b23a48",
        linestyle="--",
        label=f"free {report.memory.source}",
    )
    axes.set_title(f"{found.name}: {plan.max_length:,} tokens chosen")
    axes.set_xlabel("context, tokens a slot")
    axes.set_ylabel("memory, GiB")
    axes.legend()
    try:
        figure.savefig(path, dpi=120, format="png")
    except OSError as error:
        raise FimbleError(
            f"{path} cannot be written: {error.strerror or error}.",
            next_step="Give a file in a folder that you can write to.",
        ) from error
