"""Puts a whole OGA package together: graph, weights, tokenizer, configuration.

The weights come from a WeightSource, of which there are two: a GGUF file (weights.py) and
the tests' random numbers. A package is complete when ``genai_config.json`` is there: it is
written last, and removed first when a package is made anew.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fimble.errors import ImportFailed
from fimble.models.gguf_import.architecture import Architecture, HeadKind, Precision
from fimble.models.gguf_import.data_file import (
    Layout,
    Piece,
    fsync_path,
    lay_out,
    write_data_file,
)
from fimble.models.gguf_import.formats import FORMAT_OF, Format, PackedRows, usual_block
from fimble.models.gguf_import.graph import (
    ALL_LOGITS_FILE,
    DATA_FILE,
    MODEL_FILE,
    ROPE_COS,
    ROPE_SIN,
    build_graph,
    model_proto,
)
from fimble.models.gguf_import.quantize import pack_rows
from fimble.models.gguf_import.tokenizer import TokenizerSource, tokenizer_files
from fimble.models.provenance import PROVENANCE_FILE
from fimble.progress import Progress, ProgressEvent, ignore_progress

__all__ = [
    "CONFIG_FILE",
    "IMPORTER_VERSION",
    "JOURNAL_FILE",
    "Provenance",
    "WeightSource",
    "rope_rows",
    "write_package",
]

F32 = npt.NDArray[np.float32]

CONFIG_FILE = "genai_config.json"
JOURNAL_FILE = "import.journal"

IMPORTER_VERSION = 3
"""Raised with every change to the bytes that an import makes, so that none is resumed across."""

_SPARE_BYTES = 64 << 20
"""Free space wanted beyond the weights: the tokenizer's and the graph's files, and some air."""

_STOP_TOKENS = ("<|im_end|>", "<|endoftext|>")


class WeightSource(Protocol):
    """Where the weights come from, by GGUF name. Called from several threads at once."""

    def rows(self, name: str, start: int, stop: int) -> F32:
        """Rows of a matrix as float32 [stop - start, columns]; of a vector as [n, 1]."""
        ...

    def exact(
        self, name: str, start: int, stop: int, format: Format, block: int
    ) -> PackedRows | None:
        """The same rows in a format, where that loses nothing; None where it would."""
        ...


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a package comes from. No paths and no times: equal inputs give equal packages."""

    source_file: str
    source_sha256: str
    name: str
    license: str | None


def write_package(
    destination: Path,
    arch: Architecture,
    weights: WeightSource,
    tokenizer: TokenizerSource,
    *,
    precision: Precision,
    head: HeadKind,
    provenance: Provenance,
    block: int | None = None,
    progress: Progress = ignore_progress,
) -> None:
    """Write a package's files into ``destination``, created if absent.

    ``block`` is how many weights share a scale, where it is not to be the usual number.

    Goes on where an interrupted call with equal arguments stopped. Raises ImportFailed when
    the disk has too little room or cannot be written.
    """
    try:
        files = tokenizer_files(tokenizer)
    except ValueError as error:
        raise ImportFailed(
            f"The tokenizer in {provenance.source_file} makes no sense: {error}.",
            next_step="Download the file again, or use another one.",
        ) from error
    block = block or usual_block(arch, precision)
    graph = build_graph(arch, FORMAT_OF[precision], head, block)
    layout = lay_out(graph.slots)
    all_logits = build_graph(arch, FORMAT_OF[precision], head, block, all_logits=True)
    models = {
        name: model_proto(each, layout.offsets, str(IMPORTER_VERSION)).SerializeToString(
            deterministic=True
        )
        for name, each in ((MODEL_FILE, graph), (ALL_LOGITS_FILE, all_logits))
    }
    identity: dict[str, Any] = {
        "format_version": 1,
        "importer_version": IMPORTER_VERSION,
        "kind": "qwen2",
        "license": provenance.license,
        "name": provenance.name,
        "precision": precision,
        "block_size": block,
        "head": head,
        "source": {"file": provenance.source_file, "sha256": provenance.source_sha256},
    }
    # The graph names every slot and offset, the source's hash every weight.
    key = hashlib.sha256(
        models[MODEL_FILE] + _json({"identity": identity, "arch": asdict(arch)}).encode()
    ).hexdigest()
    try:
        destination.mkdir(parents=True, exist_ok=True)
        (destination / CONFIG_FILE).unlink(missing_ok=True)
        _check_space(destination, layout)
        write_data_file(
            destination / DATA_FILE,
            destination / JOURNAL_FILE,
            layout,
            lambda piece: _encode(piece, arch, weights),
            key=key,
            progress=progress,
        )
        files[PROVENANCE_FILE] = _json(identity)
        contents = models | {name: text.encode("utf-8") for name, text in files.items()}
        contents[CONFIG_FILE] = _json(genai_config(arch, tokenizer)).encode("utf-8")
        for done, (name, content) in enumerate(contents.items()):
            progress(ProgressEvent("finish", done, len(contents), "steps"))
            _put(destination / name, content)
        (destination / JOURNAL_FILE).unlink(missing_ok=True)
        progress(ProgressEvent("finish", len(contents), len(contents), "steps"))
    except OSError as error:
        raise ImportFailed(
            f"The package could not be written to {destination}: {error.strerror or error}.",
            next_step="Check the disk and its permissions, then run the same command again: "
            "it goes on where it stopped.",
        ) from error


def _encode(piece: Piece, arch: Architecture, weights: WeightSource) -> PackedRows:
    """A piece of a slot, put together from the sources that it spans."""
    slot = piece.slot
    parts: list[PackedRows] = []
    first = 0
    for name, count in zip(slot.sources, slot.source_rows, strict=True):
        start, stop = max(piece.start - first, 0), min(piece.stop - first, count)
        first += count
        if start >= stop:
            continue
        if name in (ROPE_COS, ROPE_SIN):
            parts.append(PackedRows((rope_rows(arch, name, start, stop),)))
            continue
        packed = weights.exact(name, start, stop, slot.format, slot.block)
        if packed is None:
            packed = pack_rows(weights.rows(name, start, stop), slot.format, slot.block)
        parts.append(packed)
    if len(parts) == 1:
        return parts[0]
    columns = zip(*(part.arrays for part in parts), strict=True)
    return PackedRows(tuple(np.concatenate(arrays) for arrays in columns))


def rope_rows(arch: Architecture, name: str, start: int, stop: int) -> F32:
    """Cosines or sines of the rotary embedding, float32 [positions, head_size / 2].

    The angles are computed in float64: at position 30,000 float32 is off by 0.002.
    """
    exponents = np.arange(0, arch.head_size, 2, dtype=np.float64) / arch.head_size
    angles = np.outer(np.arange(start, stop, dtype=np.float64), arch.rope_theta**-exponents)
    return (np.cos(angles) if name == ROPE_COS else np.sin(angles)).astype(np.float32)


def genai_config(arch: Architecture, tokenizer: TokenizerSource) -> dict[str, Any]:
    """onnxruntime-genai's description of the package, for the CPU provider."""
    by_text = {t: i for i, t in enumerate(tokenizer.tokens) if t in _STOP_TOKENS}
    stops = list(dict.fromkeys([tokenizer.eos, *by_text.values()]))
    return {
        "model": {
            "bos_token_id": tokenizer.pad if tokenizer.bos is None else tokenizer.bos,
            "context_length": arch.context_length,
            "decoder": {
                "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
                "filename": MODEL_FILE,
                "head_size": arch.head_size,
                "hidden_size": arch.hidden,
                "inputs": {
                    "input_ids": "input_ids",
                    "attention_mask": "attention_mask",
                    "past_key_names": "past_key_values.%d.key",
                    "past_value_names": "past_key_values.%d.value",
                },
                "outputs": {
                    "logits": "logits",
                    "present_key_names": "present.%d.key",
                    "present_value_names": "present.%d.value",
                },
                "num_attention_heads": arch.heads,
                "num_hidden_layers": arch.layers,
                "num_key_value_heads": arch.kv_heads,
            },
            "eos_token_id": stops,
            "pad_token_id": tokenizer.pad,
            "type": "qwen2",
            "vocab_size": arch.vocab,
        },
        "search": {
            "diversity_penalty": 0.0,
            "do_sample": False,
            "early_stopping": True,
            "length_penalty": 1.0,
            "max_length": arch.context_length,
            "min_length": 0,
            "no_repeat_ngram_size": 0,
            "num_beams": 1,
            "num_return_sequences": 1,
            "past_present_share_buffer": True,
            "repetition_penalty": 1.0,
            "temperature": 1.0,
            "top_k": 50,
            "top_p": 1.0,
        },
    }


def _check_space(destination: Path, layout: Layout) -> None:
    data = destination / DATA_FILE
    try:
        stat = data.stat()
        # Sparse where the system can: only what is really there needs no room any more.
        present = min(getattr(stat, "st_blocks", 0) * 512, layout.size)
    except OSError:
        present = 0
    needed = layout.size - present + _SPARE_BYTES
    free = shutil.disk_usage(destination).free
    if free < needed:
        raise ImportFailed(
            f"The package needs {needed / 1e6:,.0f} MB of disk space in {destination}, "
            f"and {free / 1e6:,.0f} MB are free.",
            next_step="Free some space, then run the same command again.",
        )


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) + "\n"


def _put(path: Path, content: bytes) -> None:
    """A small file, there in full or not at all."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_bytes(content)
    fsync_path(fresh)
    fresh.replace(path)
