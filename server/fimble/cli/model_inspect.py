"""``fimble model inspect``: what a package is, and whether and how it can run here."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from fimble.cli.memory_chart import chart_lines, save_chart
from fimble.cli.output import byte_size, bytes_of, echo_json, json_option, say
from fimble.engine.options import EngineOptions
from fimble.models.device_memory import free_memory
from fimble.models.genai_config import Sampling
from fimble.models.inspection import Inspection, inspect_package
from fimble.models.providers import this_machine
from fimble.models.report import ModelReport, make_report
from fimble.models.store import Store

__all__ = ["inspect_model"]

_INDENT = 16


@click.command("inspect")
@click.argument("package", metavar="NAME|PATH")
@click.option(
    "--context-tokens",
    type=click.IntRange(min=64),
    default=EngineOptions().context_tokens,
    show_default=True,
    help="Longest prompt plus answer to plan for; the engine's own limit by default.",
)
@click.option(
    "--slots",
    type=click.IntRange(1, 64),
    default=EngineOptions().slots,
    show_default=True,
    help="KV caches kept at once.",
)
@click.option(
    "--free-memory",
    "free_memory_bytes",
    callback=bytes_of,
    metavar="SIZE",
    help="Memory that the device has free, such as 16GiB, where it cannot be found out.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.png",
    help="Also save memory against context length as a picture (needs 'fimble[plot]').",
)
@json_option
def inspect_model(
    package: str,
    context_tokens: int,
    slots: int,
    free_memory_bytes: int | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Show what a package is, whether it can run here, and what memory it takes.

    \b
    Examples:
      fimble model inspect qwen2.5-coder-0.5b
      fimble model inspect ~/models/Qwen2.5-Coder-14B-Instruct_gpuep_1.0_gpu_128 --free-memory 16GiB
    """
    found = inspect_package(Store().find(package))
    memory = free_memory(found.provider.name, setting=free_memory_bytes)
    report = make_report(found, this_machine(), memory, slots=slots, setting=context_tokens)
    if plot is not None:
        save_chart(report, plot)
        say(f"{plot} is written.")
    if as_json:
        echo_json(report.to_json())
    else:
        _print(report)


def _print(report: ModelReport) -> None:
    found = report.inspection
    for label, text in _rows(report).items():
        click.echo(f"{label:{_INDENT}}{text}")
    for name, size in found.files:
        click.echo(f"{'':{_INDENT}}{name}  {byte_size(size)}")
    click.echo()
    for line in chart_lines(report, min(100, shutil.get_terminal_size().columns)):
        click.echo(line)
    click.echo()
    click.echo(f"{'runs here':{_INDENT}}{'yes' if report.runnable else 'no'}")
    if report.problem:
        click.echo(f"{'problem':{_INDENT}}{report.problem}")
        click.echo(f"{'next step':{_INDENT}}{report.next_step}")
    if report.plan.limited_by == "memory":
        for label, line in zip(["less memory", *[""] * 9], report.advice, strict=False):
            click.echo(f"{label:{_INDENT}}{line}")


def _rows(report: ModelReport) -> dict[str, str]:
    """Label and text of each line, without those that would be empty."""
    found, plan = report.inspection, report.plan
    shape, window = found.decoder, found.window
    rows = {
        "name": found.name,
        "origin": found.origin,
        "architecture": f"{found.model_type}, {shape.layers} layers, {shape.heads} heads "
        f"({shape.kv_heads} for keys and values) of {shape.head_size}",
        "weights": ", ".join(filter(None, [found.quantisation, byte_size(found.weights_bytes)])),
        "provider": _provider(found),
        "made for": f"Ryzen AI {found.release}" if found.release else "",
        "window": f"{window.tokens:,} tokens (limited by {window.limited_by})",
        "KV cache": f"{byte_size(found.kv_bytes_per_token)} a token, "
        f"{byte_size(found.kv_bytes_at_window)} when full"
        + ("" if plan.need.share_buffer else "; twice that, since its buffers are not shared"),
        "sampling": _sampling(found.sampling),
        "completion": "fill-in-the-middle" if found.fim else "no: a chat model",
        "chat template": found.extras.chat_template or "none",
        "plan": f"{plan.max_length:,} tokens in each of {plan.slots} slots, "
        f"{byte_size(plan.total)} in all",
        "why": report.reason(),
        "if that fails": f"{', '.join(f'{each:,}' for each in plan.lower)} tokens"
        if plan.lower
        else "",
        "unknown keys": ", ".join([*found.config.unknown_keys, *found.config.ignored_keys]),
        "notes": "; ".join(found.extras.notes),
        "files": f"{len(found.files)}, {byte_size(sum(size for _, size in found.files))}",
    }
    return {label: text for label, text in rows.items() if text}


def _provider(found: Inspection) -> str:
    options = found.provider.options | found.config.session_entries
    listed = ", ".join(f"{key}={value}" for key, value in options.items())
    return f"{found.provider.name} ({listed})" if listed else found.provider.name


def _sampling(sampling: Sampling) -> str:
    values = {name: getattr(sampling, name) for name in Sampling.__slots__}
    return ", ".join(f"{name} {value}" for name, value in values.items() if value is not None)
