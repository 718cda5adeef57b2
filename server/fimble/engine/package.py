"""What the engine must know of a package folder before the runtime opens it.

Reads genai_config.json and finds the other files. Knows nothing of onnxruntime-genai.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fimble.engine.protocol import Sampling
from fimble.errors import LoadFailed

__all__ = ["PackageConfig", "package_stamp", "read_json", "read_package_config"]

_LFS = b"version https://git-lfs"


@dataclass(frozen=True, slots=True)
class PackageConfig:
    """``context_length`` is the model's own window in tokens, ``vocab_size`` the width of
    its logits, ``eos_ids`` where it ends by its own account. ``providers`` are the names
    in the order of the file; empty means CPU. ``weights`` is the decoder's ONNX file.
    ``stamp`` changes when the package is replaced by another one. ``sampling`` is what the
    package wants where a request leaves it open.
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

    @property
    def provider(self) -> str:
        """The provider that computes, in the runtime's spelling."""
        return self.providers[0] if self.providers else "CPU"

    @property
    def all_logits_weights(self) -> Path:
        """The variant of the graph with logits for each position, where a package has one.

        onnxruntime-genai before 0.13 accepts no graph that gives the last position only.
        """
        return self.weights.with_name(f"{self.weights.stem}_all_logits.onnx")


def read_package_config(folder: Path, name: str = "") -> PackageConfig:
    """Reads the folder's genai_config.json. Raises LoadFailed that says what is wrong."""
    path = folder / "genai_config.json"
    if not path.is_file():
        inner = sorted(each.parent for each in folder.glob("*/genai_config.json"))
        hint = f"Did you mean {inner[0]}?" if inner else "Run `fimble model list`."
        raise LoadFailed(
            f"{folder} is not a model package: it has no genai_config.json.", next_step=hint
        )
    data = read_json(path)
    try:
        model = data["model"]
        decoder = model["decoder"]
        eos = model["eos_token_id"]
        options = decoder.get("session_options", {}).get("provider_options", [])
        return PackageConfig(
            folder=folder,
            name=name or folder.name,
            context_length=int(model["context_length"]),
            vocab_size=int(model["vocab_size"]),
            eos_ids=frozenset(eos if isinstance(eos, list) else [eos]),
            providers=tuple(key for entry in options for key in entry),
            weights=folder / decoder["filename"],
            stamp=package_stamp(folder),
            sampling=_sampling(data.get("search")),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise LoadFailed(
            f"{path} is not a language model's configuration: {problem}.",
            next_step="Pull or import the package again.",
        ) from error


def _sampling(search: Any) -> Sampling:
    """The section ``search``; greedy unless it says ``do_sample``, as the runtime has it.

    Raises TypeError or ValueError.
    """
    if not isinstance(search, dict) or not search.get("do_sample"):
        return Sampling()
    return Sampling(
        temperature=float(search.get("temperature", 1.0)),
        top_p=min(1.0, max(0.0, float(search.get("top_p", 1.0)))),
        top_k=max(0, int(search.get("top_k", 0))),
    )


def package_stamp(folder: Path) -> int:
    """Changes when the package in the folder is replaced; 0 when there is none."""
    try:
        status = (folder / "genai_config.json").stat()
    except OSError:
        return 0
    return hash((status.st_mtime_ns, status.st_size, status.st_ino)) or 1


def read_json(path: Path) -> Any:
    """A JSON file of a package. Raises LoadFailed for pointers, damage and absence."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise LoadFailed(
            f"{path} cannot be read: {error.strerror}.",
            next_step="Pull or import the package again.",
        ) from error
    if raw.startswith(_LFS):
        raise LoadFailed(
            f"{path} is a Git LFS pointer, not the file itself.",
            next_step="Run `git lfs pull` there, or pull the package with `fimble model pull`.",
        )
    try:
        # Given as text: json.loads would accept a byte order mark, which the runtime refuses.
        return json.loads(raw.decode("utf-8"))
    except ValueError as error:
        raise LoadFailed(
            f"{path} is not valid JSON: {error}.",
            next_step="Pull or import the package again.",
        ) from error
