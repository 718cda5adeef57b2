"""What the engine must know of a package folder before the runtime opens it.

Takes from the package's own account (fimble.models) what the engine needs, and insists on it.
Knows nothing of onnxruntime-genai.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fimble.engine.protocol import Sampling
from fimble.errors import LoadFailed, PackageError
from fimble.models import genai_config
from fimble.models.genai_config import CONFIG_FILE, GenaiConfig, read_genai_config
from fimble.models.package_files import check_names
from fimble.models.package_json import read_json_object
from fimble.models.window import real_window

__all__ = ["PackageConfig", "package_stamp", "read_json", "read_package_config"]

#: What punishes repetition more than that leaves no sentence whole: a slip of the pen.
_MOST_PENALTY = 2.0


@dataclass(frozen=True, slots=True)
class PackageConfig:
    """``context_length`` is the model's real window in tokens, ``vocab_size`` the width of
    its logits, ``eos_ids`` where it ends by its own account. ``providers`` are the names
    in the order of the file; empty means CPU. ``weights`` is the decoder's ONNX file.
    ``stamp`` changes when the package is replaced by another one. ``sampling`` is what the
    package wants where a request leaves it open. ``cpu_forbidden``: nothing of it may run on
    the CPU by its own account.
    """

    folder: Path
    name: str
    context_length: int
    vocab_size: int
    eos_ids: frozenset[int]
    providers: tuple[str, ...]
    weights: Path
    stamp: int
    sampling: Sampling
    cpu_forbidden: bool = False

    @property
    def provider(self) -> str:
        """The provider that computes, in the package's spelling."""
        return self.providers[0] if self.providers else "CPU"

    @property
    def all_logits_weights(self) -> Path:
        """The variant of the graph with logits for each position, where a package has one.

        onnxruntime-genai before 0.13 accepts no graph that gives the last position only.
        """
        return self.weights.with_name(f"{self.weights.stem}_all_logits.onnx")


def read_package_config(folder: Path, name: str = "") -> PackageConfig:
    """Reads the folder's genai_config.json. Raises LoadFailed that says what is wrong."""
    if not (folder / CONFIG_FILE).is_file():
        inner = sorted(each.parent for each in folder.glob(f"*/{CONFIG_FILE}"))
        hint = f"Did you mean {inner[0]}?" if inner else "Run `fimble model list`."
        raise LoadFailed(
            f"{folder} is not a model package: it has no {CONFIG_FILE}.", next_step=hint
        )
    stamp = package_stamp(folder)
    try:
        config = read_genai_config(folder)
        check_names(config)
    except PackageError as error:
        raise LoadFailed(error.message, next_step=error.next_step) from error
    _check(folder / CONFIG_FILE, config)
    return PackageConfig(
        folder=folder,
        name=name or folder.name,
        context_length=real_window(config).tokens,
        vocab_size=config.vocab_size,
        eos_ids=config.eos_ids,
        providers=tuple(provider.name for provider in config.providers),
        weights=folder / config.decoder.filename,
        stamp=stamp,
        sampling=_sampling(config.search.sampling),
        cpu_forbidden=config.session_entries.get("session.disable_cpu_ep_fallback") == "1",
    )


def _check(path: Path, config: GenaiConfig) -> None:
    """Raises LoadFailed where the runtime could not read it, or something needed is missing."""
    window = real_window(config)
    needed = {
        "model.context_length": window.tokens,
        "model.vocab_size": config.vocab_size,
        "model.decoder.filename": config.decoder.filename,
    }
    missing = [f"{key} is missing" for key, value in needed.items() if not value]
    problems = [*config.faults, *window.faults, *missing]
    if config.bom:
        problems.insert(0, "it begins with a byte order mark, which the runtime does not read")
    if problems:
        raise LoadFailed(
            f"{path} is not a language model's configuration: {problems[0]}.",
            next_step="Pull or import the package again.",
        )


def _sampling(wanted: genai_config.Sampling) -> Sampling:
    """Greedy unless the package says ``do_sample``, as the runtime has it.

    The runtime punishes repetition in both cases.
    """
    penalty = wanted.repetition_penalty
    if penalty is None or not 0.0 < penalty <= _MOST_PENALTY:
        penalty = 1.0
    if not wanted.do_sample:
        return Sampling(repetition_penalty=penalty)
    return Sampling(
        temperature=1.0 if wanted.temperature is None else wanted.temperature,
        top_p=1.0 if wanted.top_p is None else min(1.0, wanted.top_p),
        top_k=wanted.top_k or 0,
        repetition_penalty=penalty,
    )


def package_stamp(folder: Path) -> int:
    """Changes when the package in the folder is replaced; 0 when there is none."""
    try:
        status = (folder / CONFIG_FILE).stat()
    except OSError:
        return 0
    return hash((status.st_mtime_ns, status.st_size, status.st_ino)) or 1


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file of a package. Raises LoadFailed for pointers and damage."""
    try:
        return read_json_object(path)
    except PackageError as error:
        raise LoadFailed(error.message, next_step=error.next_step) from error
