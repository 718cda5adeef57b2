"""genai_config.json as a typed value: the one reader of it, for inspection and the engine.

Reads tolerantly: what is missing is None, 0 or empty, what has a wrong type or size is a
sentence in ``faults``, and keys that onnxruntime-genai does not know are named. Knows nothing
of the files that the configuration names, nor of this machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fimble.models.config_keys import SESSION_KEYS, sort_keys
from fimble.models.config_paths import libraries_in, paths_in
from fimble.models.config_values import INT32_MAX, ConfigValues
from fimble.models.package_json import begins_with_bom, read_json_object

__all__ = [
    "CONFIG_FILE",
    "SETTABLE",
    "Decoder",
    "GenaiConfig",
    "Provider",
    "Sampling",
    "Search",
    "canonical_provider",
    "read_genai_config",
]

CONFIG_FILE = "genai_config.json"
"""What makes a folder a package."""

SETTABLE = ("cpu", "webgpu", "dml", "cuda", "amdgpu", "ryzenai", "vitisai", "openvino", "qnn")
"""Providers that a user may ask for, in place of a package's own."""

_LARGEST = 4 << 20  # bytes
_MOST_LAYERS = 4096
_MOST_WIDTH = 1 << 24

_PROVIDERS = (
    *("AMDGPU", "CPU", "cuda", "DML", "NvTensorRtRtx", "OpenVINO", "QNN", "RyzenAI", "VitisAI"),
    "WebGPU",
)


@dataclass(frozen=True, slots=True)
class Provider:
    """An execution provider as the package spells it, and its options, which are strings."""

    name: str
    options: dict[str, str] = field(default_factory=dict)

    @property
    def canonical(self) -> str:
        """The runtime's own spelling of the name."""
        return canonical_provider(self.name)


@dataclass(frozen=True, slots=True)
class Decoder:
    """The decoder's graph and its shape; 0 for what is not stated."""

    filename: str = ""
    layers: int = 0
    hidden_size: int = 0
    heads: int = 0
    kv_heads: int = 0
    head_size: int = 0


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a package wants its tokens chosen; None for what it leaves open.

    Without ``do_sample`` the runtime takes the likeliest token, whatever the others say.
    """

    do_sample: bool | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    repetition_penalty: float | None = None
    num_beams: int | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """``max_length`` and ``chunk_size`` in tokens, None where not stated.

    ``share_buffer``: past and present are one KV buffer, allocated whole; off by default.
    """

    max_length: int | None = None
    chunk_size: int | None = None
    share_buffer: bool = False
    sampling: Sampling = field(default_factory=Sampling)


@dataclass(frozen=True, slots=True)
class GenaiConfig:
    """A package by its own account.

    ``context_length`` and ``vocab_size`` are 0 where not stated. ``providers`` in the order
    of the file, none for the CPU. ``session_entries`` are the decoder's session options that
    the runtime passes on. ``files`` are all files that it needs, relative to it; ``paths`` is
    everything that is named as a file or folder, and ``libraries`` are (key, name) of code.
    ``bom``: it begins with a byte order mark, which the runtime does not read.
    ``unknown_keys`` are refused by the runtime, ``ignored_keys`` are not; both by their full
    names.
    """

    model_type: str
    context_length: int
    vocab_size: int
    eos_ids: frozenset[int]
    decoder: Decoder
    providers: tuple[Provider, ...]
    session_entries: dict[str, str]
    search: Search
    files: tuple[str, ...]
    paths: tuple[str, ...] = ()
    libraries: tuple[tuple[str, str], ...] = ()
    bom: bool = False
    unknown_keys: tuple[str, ...] = ()
    ignored_keys: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def provider(self) -> Provider:
        """The provider that computes."""
        return self.providers[0] if self.providers else Provider("CPU")


def read_genai_config(folder: Path) -> GenaiConfig:
    """The configuration in ``folder`` itself. Raises PackageError where it cannot be read."""
    path = folder / CONFIG_FILE
    data = read_json_object(path, largest=_LARGEST)
    values = ConfigValues()
    model = values.table(data, "model")
    decoder = values.table(model, "decoder", "model")
    session = values.table(decoder, "session_options", "model.decoder")
    providers = tuple(_providers(session, values))
    shape, paths = _decoder(decoder, values), paths_in(data)
    unknown, ignored = sort_keys(data)
    return GenaiConfig(
        model_type=values.text(model, "type", "model"),
        context_length=values.count(model, "context_length", "model") or 0,
        vocab_size=values.count(model, "vocab_size", "model", most=_MOST_WIDTH) or 0,
        eos_ids=_eos_ids(model, values),
        decoder=shape,
        providers=providers,
        session_entries={
            key: value
            for key, value in session.items()
            if key not in SESSION_KEYS and isinstance(value, str)
        },
        search=_search(values.table(data, "search"), values),
        files=_named_files(shape.filename, paths),
        paths=tuple(text for _, text in paths),
        libraries=tuple(libraries_in(data)),
        bom=begins_with_bom(path),
        unknown_keys=unknown,
        ignored_keys=ignored,
        faults=tuple(values.faults),
    )


def canonical_provider(name: str) -> str:
    """``name`` as the runtime dispatches it: in any case, with or without ExecutionProvider."""
    lower = name.lower()
    if lower != "executionprovider":
        lower = lower.removesuffix("executionprovider")
    return next((known for known in _PROVIDERS if known.lower() == lower), name)


# --- parts ---------------------------------------------------------------------------------


def _eos_ids(model: dict[str, Any], values: ConfigValues) -> frozenset[int]:
    stated = model.get("eos_token_id", [])
    listed = stated if isinstance(stated, list) else [stated]
    ids = [
        values.count({"eos_token_id": each}, "eos_token_id", "model", least=0) for each in listed
    ]
    return frozenset(each for each in ids if each is not None)


def _providers(session: dict[str, Any], values: ConfigValues) -> Iterator[Provider]:
    where = "model.decoder.session_options"
    for entry in values.list(session, "provider_options", where):
        wrapped = {"provider_options": entry}
        for name in values.table(wrapped, "provider_options", where):
            options = values.table(entry, name, f"{where}.provider_options")
            yield Provider(name, {k: _option(v) for k, v in options.items()})


def _option(value: object) -> str:
    """An option as the runtime would have it: a string."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(value)[:200] if not isinstance(value, int) or abs(value) < 2**63 else "too large"


def _decoder(decoder: dict[str, Any], values: ConfigValues) -> Decoder:
    def count(key: str, most: int = _MOST_WIDTH) -> int:
        return values.count(decoder, key, "model.decoder", most=most) or 0

    heads, hidden = count("num_attention_heads"), count("hidden_size")
    return Decoder(
        filename=values.text(decoder, "filename", "model.decoder"),
        layers=count("num_hidden_layers", _MOST_LAYERS),
        hidden_size=hidden,
        heads=heads,
        kv_heads=count("num_key_value_heads") or heads,
        head_size=count("head_size") or (hidden // heads if heads else 0),
    )


def _search(search: dict[str, Any], values: ConfigValues) -> Search:
    return Search(
        max_length=values.count(search, "max_length", "search"),
        # 0 and less turn chunking off.
        chunk_size=values.count(search, "chunk_size", "search", least=-INT32_MAX) or None,
        share_buffer=values.flag(search, "past_present_share_buffer", "search") or False,
        sampling=Sampling(
            do_sample=values.flag(search, "do_sample", "search"),
            temperature=values.number(search, "temperature", "search"),
            top_k=values.count(search, "top_k", "search", least=0),
            top_p=values.number(search, "top_p", "search"),
            repetition_penalty=values.number(search, "repetition_penalty", "search"),
            num_beams=values.count(search, "num_beams", "search"),
        ),
    )


def _named_files(filename: str, paths: list[tuple[str, str]]) -> tuple[str, ...]:
    """The decoder's graph first, then all other graphs and a provider's own weights."""
    keys = (".filename", ".external_data_file")
    named = [text for key, text in paths if key.startswith("model.") and key.endswith(keys)]
    return tuple(dict.fromkeys([filename, *named] if filename else named))
