"""onnxruntime-genai's and its providers' words for what went wrong, in the user's terms.

A table: a pattern in the runtime's text, what it means, and what to do. Texts that are not
in it are shown whole, with the command that looks further. Knows no runtime: only texts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fimble.errors import GenerationFailed, LoadFailed

__all__ = [
    "MEANINGS",
    "Kind",
    "Meaning",
    "OutOfMemory",
    "explain_generation_error",
    "explain_load_error",
    "is_out_of_memory",
    "meaning_of",
]

#: What has to change: the installed runtime, the device or its driver, the package's files,
#: its configuration, the memory that is used, or the request.
Kind = Literal["runtime", "device", "files", "config", "memory", "request"]

_DOCTOR = "Run `fimble doctor`: it shows what is missing on this machine."
_WRONG_RUNTIME = (
    "Install the onnxruntime-genai distribution that has it (`fimble doctor` shows which one "
    "is installed), or pull a package for another provider."
)
_RYZEN_AI = (
    "Start fimble inside AMD's Ryzen AI environment, or pull a package for another provider; "
    "`fimble doctor` shows what is installed."
)
_AMDGPU = (
    "Install AMD's plug-in and set AMDGPU_EP_PATH to its library (`fimble doctor` shows what "
    "is there), or pull a package for another provider."
)
_DEVICE = "Check that its driver is installed (`fimble doctor`), or use another package."
_DAMAGED = "Pull or import the package again."
_LFS = "Run `git lfs pull` there, or pull the package with `fimble model pull`."
_MEMORY = (
    "Close other programs that use the device's memory, start the engine with fewer "
    "--context-tokens, or use a smaller model."
)
_RELEASE = (
    "Use the package that AMD made for your Ryzen AI release, or install the release in the "
    "package's name; `fimble doctor` compares them."
)
_REMOVED = (
    "Update the graphics driver, close other programs that use the device, and start the "
    "engine with fewer --context-tokens."
)
_INT8 = (
    "Make a package with 8 bits and use that one: `fimble model pull MODEL --precision int8 "
    "--name NAME`, or `fimble model import FILE.gguf --precision int8 --name NAME`. On the "
    "processor this one runs: leave out --provider."
)
_SHORTER = "Shorten the prompt, or start the engine with more --context-tokens."


class OutOfMemory(GenerationFailed):
    """There was no memory for a KV cache or for the work on it."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """One cause. ``{0}`` in ``meaning`` is the pattern's first group."""

    pattern: str
    kind: Kind
    meaning: str
    next_step: str


#: The first match counts, so what is particular comes before what is general.
MEANINGS = (
    # --- the provider is not there ---
    Meaning(
        r"not been built with (\w+) support",
        "runtime",
        "this runtime has no {0} provider",
        _WRONG_RUNTIME,
    ),
    Meaning(
        r"(?i)Failed to create allocator for AMDGPU",
        "runtime",
        "AMD's AMDGPU plug-in is not registered, or it found no device",
        _AMDGPU,
    ),
    Meaning(
        r"Failed to create allocator for (\w+)",
        "runtime",
        "this runtime has no {0} provider, or found no device for it",
        _WRONG_RUNTIME,
    ),
    Meaning(
        r"Unexpected failure to create device memory allocator for (\w+)",
        "device",
        "the {0} provider offers no memory of its device",
        _DEVICE,
    ),
    Meaning(
        r"Failed to register (RyzenAI) execution provider library",
        "runtime",
        "the library of the {0} provider is not installed, or not where it is looked for",
        _RYZEN_AI,
    ),
    Meaning(
        r"Failed to register (\w+) execution provider library",
        "runtime",
        "the library of the {0} provider is not installed",
        _WRONG_RUNTIME,
    ),
    Meaning(
        r"Unknown provider name '(RyzenAI)'",
        "runtime",
        "this runtime has no {0} provider; AMD's own distribution of it has",
        _RYZEN_AI,
    ),
    Meaning(
        r"Unknown provider name '(\w+)'",
        "runtime",
        "this runtime has no {0} provider",
        _WRONG_RUNTIME,
    ),
    Meaning(
        r"WebGPU execution provider is not supported in this build",
        "runtime",
        "this runtime has no WebGPU provider of its own, and its plug-in is not registered",
        "Run `pip install onnxruntime-ep-webgpu`, or pull a package for another provider.",
    ),
    Meaning(
        r"(\w+) execution provider is not supported in this build",
        "runtime",
        "this runtime has no {0} provider",
        _WRONG_RUNTIME,
    ),
    Meaning(
        r"No RyzenAI devices detected",
        "device",
        "no RyzenAI device was found in this machine: no NPU that AMD's packages support, or no "
        "driver for it",
        "Install AMD's NPU driver (`fimble doctor` shows device and driver), or use a package "
        "for another provider.",
    ),
    Meaning(r"No (\w+) devices detected", "device", "no {0} device was found here", _DEVICE),
    Meaning(
        r"Provider options not found for provider: (\w+)",
        "config",
        "its genai_config.json names the provider {0} and has no options for it",
        _DAMAGED,
    ),
    Meaning(
        r"Running a model with multiple providers is not supported",
        "config",
        "its genai_config.json names several providers",
        "Leave one of them in provider_options.",
    ),
    Meaning(
        r"CPU execution provider does not support provider options",
        "config",
        "its genai_config.json has options for the CPU provider, which takes none",
        "Remove the CPU entry from provider_options.",
    ),
    Meaning(
        r"Continuous decoding is not supported on the selected device type \((\w+)\)",
        "device",
        "the {0} provider cannot go on with a prompt that it has begun",
        "Try again; if it happens again, please report it.",
    ),
    Meaning(
        r"(com\.ryzenai)",
        "runtime",
        "it is made for AMD's Ryzen AI runtime and runs on no other",
        _RYZEN_AI,
    ),
    Meaning(
        r"flat version is not supported",
        "runtime",
        "it was made for another release of AMD's Ryzen AI software than the installed one",
        _RELEASE,
    ),
    Meaning(
        r"invalid unordered_map<K, T> key",
        "runtime",
        "it does not fit the installed release of AMD's Ryzen AI software, or this NPU",
        _RELEASE,
    ),
    Meaning(
        r"(?i)failed to create context virtual|AMDXDNA_CREATE_HWCTX",
        "device",
        "the NPU refused to start work: it is of another generation than the package is for, "
        "it is in use, or its driver is too old",
        "Close other programs that use the NPU, and look at NPU and driver with `fimble doctor`.",
    ),
    Meaning(
        r"fallback to CPU EP has been explicitly disabled",
        "runtime",
        "its provider cannot run the whole graph, and the package forbids the CPU to help",
        _WRONG_RUNTIME,
    ),
    Meaning(
        r"is not a registered function/op",
        "runtime",
        "its graph has operators that this runtime does not know",
        _WRONG_RUNTIME,
    ),
    Meaning(
        r"Failed to load (?:library|symbol)|Shared library load failure|Failed to load onnxruntime",
        "runtime",
        "a library of the runtime, or one that it depends on, cannot be loaded",
        _DOCTOR,
    ),
    Meaning(
        r"(?s)GatherBlockQuantized.*scales and zero_points must have the same shape",
        "device",
        "this provider cannot look up its 4-bit embedding",
        _INT8,
    ),
    Meaning(
        r"(?i)requires f16 but the device does not support it",
        "device",
        "this device, or its driver, does not compute in half precision",
        _INT8,
    ),
    # --- the device fails ---
    Meaning(
        r"(?i)AMDXDNA_CREATE_BO.*err=-(?:11|12)|RLIMIT_MEMLOCK",
        "memory",
        "the NPU needs more locked memory than this user may have",
        "Raise the limit (`memlock` in /etc/security/limits.conf, to unlimited), log in again.",
    ),
    Meaning(
        r"(?i)887A000[567]|88740006|device removed|device hung|"
        r"GPU will not respond to more commands|VK_ERROR_DEVICE_LOST|device (?:was|is) lost",
        "device",
        "the graphics device stopped answering",
        _REMOVED,
    ),
    # --- memory ---
    Meaning(
        r"(?i)bad allocation|bad_alloc|out of memory|out_of_(?:device_|host_)?memory|"
        r"outofmemory|failed to allocate|not enough memory|8007000E|ALLOC_FAILED|"
        r"cannot allocate memory|insufficient memory|paging file is too small|"
        r"smaller than requested bytes",
        "memory",
        "there is not enough memory",
        _MEMORY,
    ),
    # --- files ---
    Meaning(r"External data path does not exist", "files", "its weights file is missing", _DAMAGED),
    Meaning(
        r"External data path escapes model directory",
        "files",
        "its weights lie outside the folder (a symbolic link without its data)",
        "Copy the package with all its files into one folder.",
    ),
    Meaning(
        r"Config path must (?:be a relative path|not contain path traversal)",
        "files",
        "its genai_config.json names a file outside the folder",
        "Do not use this package; get it from its owner again.",
    ),
    Meaning(
        r"Protobuf parsing failed", "files", "its .onnx file is damaged or a Git LFS pointer", _LFS
    ),
    Meaning(
        r"parse_error\.101", "files", "a JSON file of it is damaged or a Git LFS pointer", _LFS
    ),
    Meaning(
        r"out of bounds or can not be read in full",
        "files",
        "its weights file is incomplete",
        _DAMAGED,
    ),
    Meaning(r"Error opening (.*genai_config\.json)", "files", "{0} cannot be opened", _DAMAGED),
    Meaning(
        r"(?i)Load model from (.+?) failed:.*(?:doesn't exist|does not exist|NO_SUCHFILE)",
        "files",
        "{0} is missing",
        _DAMAGED,
    ),
    # --- configuration ---
    Meaning(
        r"max_length \((\d+)\) cannot be greater than model context_length",
        "config",
        "its search.max_length ({0}) is larger than its context_length",
        "Lower max_length in the package's genai_config.json.",
    ),
    Meaning(
        r"search max_length is 0|context_length is 0 or was not set",
        "config",
        "its genai_config.json does not say how long its context is",
        "Set context_length under model, and max_length under search.",
    ),
    Meaning(
        r"Unknown value \"([^\"]+)\"",
        "config",
        "its genai_config.json has a setting {0} that this runtime does not know",
        "Use the runtime that the package was made for, or remove the setting.",
    ),
    Meaning(
        r"Unsupported model_type in config\.json: (\S+)",
        "config",
        "this runtime does not know models of the type {0}",
        "Install a newer onnxruntime-genai, or use another package.",
    ),
    Meaning(
        r"(?:JSON Error|Error encountered while parsing)",
        "config",
        "its genai_config.json is not what the runtime can read (a byte order mark at its "
        "beginning is refused, too)",
        "Save it as UTF-8 without a byte order mark, or pull the package again.",
    ),
    Meaning(
        r"invalid dimensions for output: logits",
        "config",
        "this runtime accepts no graph with logits for the last position only",
        "Install onnxruntime-genai 0.13 or later, or import the model again.",
    ),
    # --- requests ---
    Meaning(
        r"input_ids size \((\d+)\) \+ current sequence length \(\d+\) exceeds max length \(\d+\)",
        "request",
        "{0} more tokens do not fit its window",
        _SHORTER,
    ),
    Meaning(
        r"exceeds max length|sequence length already at max_length",
        "request",
        "prompt and answer do not fit its window",
        _SHORTER,
    ),
    Meaning(
        r"Session in Terminated state",
        "request",
        "its work was ended from outside",
        "Try again.",
    ),
)


def meaning_of(text: str) -> tuple[Meaning, str] | None:
    """The row for the runtime's ``text``, and its meaning filled in; None for an unknown one."""
    for row in MEANINGS:
        found = re.search(row.pattern, text)
        if found:
            return row, row.meaning.format(*found.groups())
    return None


def is_out_of_memory(text: str) -> bool:
    """Whether the runtime says that it had too little memory."""
    found = meaning_of(text)
    return found is not None and found[0].kind == "memory"


def explain_load_error(folder: Path, text: str, *, memory_advice: str = "") -> LoadFailed:
    """The error for ``folder``, from what the runtime said.

    ``memory_advice`` is what to do where there was too little memory, if it is known better.
    """
    said = _whole(text)
    found = meaning_of(text)
    if found is None:
        return LoadFailed(f"onnxruntime-genai cannot load {folder}: {said}", next_step=_DOCTOR)
    row, meant = found
    next_step = memory_advice if row.kind == "memory" and memory_advice else row.next_step
    return LoadFailed(
        f"The package {folder} cannot be loaded: {meant}. (onnxruntime-genai says: {said})",
        next_step=next_step,
    )


def explain_generation_error(
    what: str, text: str, *, out_of_memory: bool = False
) -> GenerationFailed:
    """The error for ``what`` went wrong while a model worked ("The model failed …").

    OutOfMemory where the text says so, or ``out_of_memory`` does (a MemoryError has no text).
    """
    said = _whole(text)
    found = meaning_of("out of memory" if out_of_memory and not is_out_of_memory(text) else text)
    if found is None:
        return GenerationFailed(f"{what}: {said}", next_step=f"Try again. {_DOCTOR}")
    row, meant = found
    kind = OutOfMemory if row.kind == "memory" else GenerationFailed
    return kind(f"{what}: {meant}. (onnxruntime-genai says: {said})", next_step=row.next_step)


def _whole(text: str) -> str:
    """All of it in one line: what is cut off is what would have explained it."""
    return " ".join(text.split()) or "no reason given"
