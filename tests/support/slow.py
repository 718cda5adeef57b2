"""A random package that takes its time, for tests that act while it works.

Like the tiny one, but wider and deeper: about a hundred times the work for each token. What
it says is noise that goes on until it is stopped.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fimble.models.gguf_import import Provenance, write_package
from tests.support.tiny import RandomWeights, tiny_architecture, tiny_tokenizer

__all__ = ["make_slow_package"]


def make_slow_package(destination: Path, *, context_length: int = 4096) -> Path:
    """Writes the package into ``destination`` and returns it."""
    arch = replace(
        tiny_architecture(context_length=context_length),
        layers=8,
        hidden=512,
        ffn=2048,
        heads=8,
        kv_heads=2,
    )
    tokenizer = tiny_tokenizer(context_length=context_length)
    write_package(
        destination,
        arch,
        RandomWeights(arch, list(tokenizer.types), seed=1, tied=False),
        tokenizer,
        precision="int4",
        head="own",
        provenance=Provenance("slow.gguf", "1" * 64, "Slow random Qwen2 Coder", None),
    )
    return destination
