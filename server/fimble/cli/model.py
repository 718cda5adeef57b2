"""``fimble model …``: packages on this machine, and how they get here."""

from __future__ import annotations

from pathlib import Path

import click

from fimble.cli.model_inspect import inspect_model
from fimble.cli.output import byte_size, echo_json, json_option, progress_bars, say
from fimble.models.catalogue import CatalogueEntry, catalogue
from fimble.models.pull import pull
from fimble.models.store import Package, Store

__all__ = ["command"]

precision_option = click.option(
    "--precision",
    type=click.Choice(["int4", "int8", "fp16"]),
    default="int4",
    show_default=True,
    help="How the weights are stored: int4 is fastest, int8 and fp16 are closer to the original.",
)


@click.group("model")
def command() -> None:
    """List, fetch, import, inspect and remove model packages."""


@command.command("list")
@json_option
def list_models(as_json: bool) -> None:
    """List installed packages, and what can be pulled.

    \b
    Example:
      fimble model list
    """
    store = Store()
    installed = {package.name: package for package in store.packages()}
    entries = {entry.name: entry for entry in catalogue()}
    if as_json:
        echo_json(
            {
                "installed": [_package_json(package) for package in installed.values()],
                "available": [_entry_json(entry) for entry in entries.values()],
            }
        )
        return
    for package in installed.values():
        click.echo(f"{package.name:32} installed   {byte_size(_size(package.path))}")
    for entry in entries.values():
        if entry.name not in installed:
            click.echo(f"{entry.name:32} available   {entry.title} ({entry.licence})")


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _package_json(package: Package) -> dict[str, object]:
    return {"name": package.name, "path": str(package.path), "bytes": _size(package.path)}


def _entry_json(entry: CatalogueEntry) -> dict[str, object]:
    return {
        "name": entry.name,
        "title": entry.title,
        "licence": entry.licence,
        "source": entry.source,
        "kind": entry.kind,
    }


@command.command("pull")
@click.argument("name", metavar="NAME|OWNER/REPOSITORY")
@click.option("--name", "install_as", metavar="NAME", help="Another name for the package.")
@precision_option
@json_option
def pull_model(name: str, install_as: str | None, precision: str, as_json: bool) -> None:
    """Fetch a model and make it ready to run.

    NAME is one of `fimble model list`; OWNER/REPOSITORY is any repository of Hugging Face that
    holds a package for onnxruntime-genai. HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE count as
    they do for huggingface_hub. Can be interrupted at any time; run again, it goes on where it
    stopped.

    \b
    Examples:
      fimble model pull qwen2.5-coder-0.5b
      fimble model pull amd/Qwen2.5-Coder-14B-Instruct_gpuep_1.0_gpu_128
    """
    with progress_bars() as progress:
        package = pull(
            name,
            store=Store(),
            precision=precision,  # type: ignore[arg-type]
            progress=progress,
            say=say,
            install_as=install_as,
        )
    _announce(package, as_json)


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--name", help="The name of the new package; the file's name by default.")
@precision_option
@json_option
def import_model(file: Path, name: str | None, precision: str, as_json: bool) -> None:
    """Turn a GGUF file of a Qwen2-architecture model into a package.

    \b
    Example:
      fimble model import qwen2.5-coder-1.5b-instruct-q4_k_m.gguf --name coder-1.5b
    """
    with progress_bars() as progress:
        package = Store().import_file(file, name, precision, progress)  # type: ignore[arg-type]
    _announce(package, as_json)


def _announce(package: Package, as_json: bool) -> None:
    if as_json:
        echo_json(_package_json(package))
    else:
        click.echo(f"{package.name} is ready ({byte_size(_size(package.path))}).")


command.add_command(inspect_model)


@command.command("remove")
@click.argument("name")
@json_option
def remove_model(name: str, as_json: bool) -> None:
    """Delete an installed package.

    \b
    Example:
      fimble model remove qwen2.5-coder-0.5b
    """
    Store().remove(name)
    if as_json:
        echo_json({"removed": name})
    else:
        click.echo(f"{name} is removed.")
