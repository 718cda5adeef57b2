"""onnxruntime-genai's words for a package that it cannot load, in the user's terms.

A table: a pattern in the runtime's text, what it means, and what to do. Texts that are not
in it are passed on as they are.
"""

from __future__ import annotations

import re
from pathlib import Path

from fimble.errors import LoadFailed

__all__ = ["explain_load_error"]

_WRONG_RUNTIME = (
    "Install the onnxruntime-genai distribution that has it (`fimble doctor` shows which one "
    "is installed), or pull a package for another provider."
)
_DAMAGED = "Pull or import the package again."
_LFS = "Run `git lfs pull` there, or pull the package with `fimble model pull`."

#: (pattern, meaning, next step). The first match counts; ``{0}`` is the pattern's group.
_MEANINGS = (
    (r"not been built with (\w+) support", "this runtime has no {0} provider", _WRONG_RUNTIME),
    (r"Failed to create allocator for (\w+)", "this runtime has no {0} provider", _WRONG_RUNTIME),
    (
        r"Failed to register (\w+) execution provider library",
        "the library of the {0} provider is not installed",
        _WRONG_RUNTIME,
    ),
    (r"Unknown provider name '(\w+)'", "this runtime has no {0} provider", _WRONG_RUNTIME),
    (
        r"(\w+) execution provider is not supported in this build",
        "this runtime has no {0} provider",
        _WRONG_RUNTIME,
    ),
    (
        r"No (\w+) devices detected",
        "no {0} device was found in this machine",
        "Check that its driver is installed, or use a package for another provider.",
    ),
    (
        r"(com\.ryzenai)",
        "it is made for AMD's Ryzen AI runtime and runs on no other",
        "Use it inside AMD's Ryzen AI environment, or pull a package for another provider.",
    ),
    (
        r"fallback to CPU EP has been explicitly disabled",
        "its provider cannot run the whole graph, and the package forbids the CPU to help",
        _WRONG_RUNTIME,
    ),
    (
        r"External data path does not exist",
        "its weights file is missing",
        _DAMAGED,
    ),
    (
        r"External data path escapes model directory",
        "its weights lie outside the folder (a symbolic link without its data)",
        "Copy the package with all its files into one folder.",
    ),
    (r"Protobuf parsing failed", "its .onnx file is damaged or a Git LFS pointer", _LFS),
    (r"parse_error\.101", "a JSON file of it is damaged or a Git LFS pointer", _LFS),
    (
        r"out of bounds or can not be read in full",
        "its weights file is incomplete",
        _DAMAGED,
    ),
    (
        r"max_length \((\d+)\) cannot be greater than model context_length",
        "its search.max_length ({0}) is larger than its context_length",
        "Lower max_length in the package's genai_config.json.",
    ),
    (
        r"Unknown value \"([^\"]+)\"",
        "its genai_config.json has a setting {0} that this runtime does not know",
        "Use the runtime that the package was made for, or remove the setting.",
    ),
    (
        r"invalid dimensions for output: logits",
        "this runtime accepts no graph with logits for the last position only",
        "Install onnxruntime-genai 0.13 or later, or import the model again.",
    ),
    (
        r"(?:bad allocation|bad_alloc|[Oo]ut of memory|Failed to allocate)",
        "there is not enough memory",
        "Close other programs, use a smaller model, or start the engine with fewer "
        "--context-tokens.",
    ),
    (
        r"Error opening (\S*genai_config\.json)",
        "{0} cannot be opened",
        _DAMAGED,
    ),
)


def explain_load_error(folder: Path, text: str) -> LoadFailed:
    """The error for ``folder``, from what the runtime said."""
    first_line = text.strip().splitlines()[0] if text.strip() else "no reason given"
    for pattern, meaning, next_step in _MEANINGS:
        found = re.search(pattern, text)
        if found:
            meant = meaning.format(*found.groups())
            return LoadFailed(
                f"The package {folder} cannot be loaded: {meant}. "
                f"(onnxruntime-genai says: {first_line[:300]})",
                next_step=next_step,
            )
    return LoadFailed(
        f"onnxruntime-genai cannot load {folder}: {first_line[:300]}",
        next_step="Check the package with `fimble model inspect`.",
    )
