"""Packages opened in onnxruntime-genai directly, for tests of what is inside them."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime_genai as og

from fimble.models.gguf_import.graph import ALL_LOGITS_FILE

__all__ = ["all_logits", "last_logits", "new_generator"]

F32 = npt.NDArray[np.float32]


def _needs_all_logits() -> bool:
    """onnxruntime-genai 0.11, the newest for Python 3.10, refuses the other graph."""
    try:
        version = distribution("onnxruntime-genai").version
    except PackageNotFoundError:
        return False
    return version.startswith("0.11.")


def new_generator(package: Path, *, max_length: int, every: bool = False) -> og.Generator:
    """A generator on the package's graph, or with ``every`` on the one for all logits."""
    config = og.Config(str(package))
    if every or _needs_all_logits():
        config.overlay(json.dumps({"model": {"decoder": {"filename": ALL_LOGITS_FILE}}}))
    model = og.Model(config)
    params = og.GeneratorParams(model)
    params.set_search_options(max_length=max_length)
    return og.Generator(model, params)


def last_logits(package: Path, *slices: npt.NDArray[np.int32]) -> F32:
    """Logits [vocab] after the last of the slices, appended one after another."""
    generator = new_generator(package, max_length=64)
    for piece in slices:
        generator.append_tokens(piece)
        logits = np.asarray(generator.get_logits())
    last: F32 = logits[0, -1]
    return last


def all_logits(package: Path, ids: npt.NDArray[np.int32]) -> F32:
    """Logits [tokens, vocab] of one go."""
    generator = new_generator(package, max_length=len(ids) + 1, every=True)
    generator.append_tokens(ids)
    every: F32 = np.asarray(generator.get_output("logits"))[0]
    return every
