"""Which onnxruntime-genai distribution is installed: five of them share one import name.

Reads the installed distributions' metadata; imports none of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata

from fimble.errors import RuntimeMissing

__all__ = ["DISTRIBUTIONS", "NO_TELEMETRY", "Runtime", "find_runtime", "installed_runtimes"]

#: Distributions that all import as ``onnxruntime_genai`` and overwrite each other.
DISTRIBUTIONS = (
    "onnxruntime-genai",
    "onnxruntime-genai-directml",
    "onnxruntime-genai-winml",
    "onnxruntime-genai-cuda",
    "onnxruntime-genai-directml-ryzenai",
)

#: For the environment, before the runtime is imported: its libraries read it when they are loaded.
#: ONNX Runtime 1.29 and newer report the program's path, names of models, errors and speeds to
#: their maker unless told not to, and keep what was not sent in the user's cache folder.
NO_TELEMETRY = {"ORT_DISABLE_TELEMETRY": "1"}


@dataclass(frozen=True, slots=True)
class Runtime:
    """The installed distribution."""

    name: str
    version: str


def find_runtime(installed: Iterable[tuple[str, str]] | None = None) -> Runtime:
    """The one onnxruntime-genai distribution; ``installed`` are (name, version) pairs.

    Raises RuntimeMissing when there is none, or more than one.
    """
    pairs = installed_runtimes() if installed is None else installed
    found = {name: version for name, version in pairs if name in DISTRIBUTIONS}
    if not found:
        raise RuntimeMissing(
            "No onnxruntime-genai is installed, so no model can run here.",
            next_step="Install one: `pip install 'fimble[cpu]'` (or [directml], [winml], [cuda]).",
        )
    if len(found) > 1:
        names = " and ".join(sorted(found))
        raise RuntimeMissing(
            f"{names} are installed together; they overwrite each other's files.",
            next_step=f"Run `pip uninstall {' '.join(sorted(found))}`, then install one of them.",
        )
    ((name, version),) = found.items()
    return Runtime(name, version)


def installed_runtimes() -> list[tuple[str, str]]:
    """(name, version) of each of the five that is installed."""
    pairs = []
    for name in DISTRIBUTIONS:
        try:
            pairs.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return pairs
