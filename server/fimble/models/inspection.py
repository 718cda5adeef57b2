"""What a package is, how large its window is, and what is wrong with it.

Reads genai_config.json, the graph without its weights, and the tokenizer's list of control
tokens. Loads nothing into a runtime, and so cannot say whether this machine has the
package's provider.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from fimble.errors import PackageError
from fimble.models.onnx_graph import GraphFacts, read_graph
from fimble.models.package_json import as_int, as_table, begins_with_bom, read_json_object
from fimble.models.store import CONFIG_FILE, Package

__all__ = ["Inspection", "Provenance", "inspect_package", "read_provenance"]

TOKENIZER_FILE = "tokenizer.json"
PROVENANCE_FILE = "fimble_package.json"  # written by gguf_import/package.py

_FIM_TOKENS = frozenset({"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"})
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_FP16_BYTES = 2  # what the KV cache of a GPU or NPU package consists of


@dataclass(frozen=True, slots=True)
class Inspection:
    """A package by its own account.

    ``window_tokens`` is the smallest of the limits it states, and ``window_limited_by`` the
    key of that one. ``kv_bytes_per_token`` is for one sequence. ``provider`` is "CPU" where
    it names none; its options are strings. ``fim``: it can fill in the middle. ``problem``
    and ``next_step`` are None for a package that is whole; ``runnable`` says the same.
    """

    name: str
    model_type: str
    provider: str
    provider_options: dict[str, str]
    window_tokens: int
    window_limited_by: str
    kv_bytes_per_token: int
    fim: bool
    quantisation: str
    files: tuple[tuple[str, int], ...]
    problem: str | None = None
    next_step: str | None = None

    @property
    def kv_bytes_at_window(self) -> int:
        """Bytes of KV cache for one sequence that fills the window."""
        return self.kv_bytes_per_token * self.window_tokens

    @property
    def runnable(self) -> bool:
        """Whether nothing is wrong with the files; the provider is another question."""
        return self.problem is None

    def to_json(self) -> dict[str, Any]:
        """The form of ``fimble model inspect --json``."""
        return {
            "name": self.name,
            "model_type": self.model_type,
            "provider": self.provider,
            "provider_options": self.provider_options,
            "window": {"tokens": self.window_tokens, "limited_by": self.window_limited_by},
            "kv": {
                "bytes_per_token": self.kv_bytes_per_token,
                "bytes_at_window": self.kv_bytes_at_window,
            },
            "fim": self.fim,
            "files": [{"name": name, "bytes": size} for name, size in self.files],
            "runnable": self.runnable,
            "problem": self.problem,
            "next_step": self.next_step,
        }


def inspect_package(package: Package) -> Inspection:
    """Looks at every file that the package needs.

    Raises PackageError only where genai_config.json is missing or unreadable; what else is
    wrong is ``problem`` in the result.
    """
    config = read_json_object(package.path / CONFIG_FILE)
    model = as_table(config.get("model"))
    provider, options = _provider(model)
    graph = GraphFacts()
    fim = False
    window, limited_by = _window(model, as_table(config.get("search")), options)
    problem = next_step = None
    try:
        graph = _check_files(package.path, model, options)
        fim = _fills_in_the_middle(package)
        if window == 0:
            raise PackageError(
                f"{CONFIG_FILE} does not say how long the model's context is.",
                next_step="Set context_length under model.",
            )
    except PackageError as error:
        problem, next_step = error.message, error.next_step
    except OSError as error:
        problem = f"{error.filename or package.path} cannot be read: {error.strerror or error}."
        next_step = "Check the permissions of the package's files."
    return Inspection(
        name=package.name,
        model_type=str(model.get("type", "")),
        provider=provider,
        provider_options=options,
        window_tokens=window,
        window_limited_by=limited_by,
        kv_bytes_per_token=_kv_elements(model) * (graph.kv_element_bytes or _FP16_BYTES),
        fim=fim,
        quantisation=graph.quantisation,
        files=_files(package.path),
        problem=problem,
        next_step=next_step,
    )


# --- what the configuration says -----------------------------------------------------------


def _provider(model: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """The first provider that the decoder names, and its options."""
    session = as_table(as_table(model.get("decoder")).get("session_options"))
    listed = session.get("provider_options")
    for entry in listed if isinstance(listed, list) else []:
        for name, options in as_table(entry).items():
            return str(name), {str(k): str(v) for k, v in as_table(options).items()}
    return "CPU", {}


def _window(
    model: dict[str, Any], search: dict[str, Any], options: dict[str, str]
) -> tuple[int, str]:
    """The smallest limit in tokens and its key; 0 where none is stated."""
    limits = {
        "context_length": as_int(model.get("context_length")),
        "search.max_length": as_int(search.get("max_length")),
        "max_length_for_kv_cache": as_int(options.get("max_length_for_kv_cache")),
    }
    # A hybrid package that takes its prompt in chunks is not bound to the length for which
    # it was optimised; both settings are needed for that.
    chunked = options.get("hybrid_opt_chunk_context") == "1" and as_int(search.get("chunk_size"))
    if not chunked:
        limits["hybrid_opt_max_seq_length"] = as_int(options.get("hybrid_opt_max_seq_length"))
    stated = [(tokens, key) for key, tokens in limits.items() if tokens is not None and tokens > 0]
    return min(stated, key=lambda limit: limit[0], default=(0, ""))


def _kv_elements(model: dict[str, Any]) -> int:
    """Numbers in the KV cache for each token: layers, key and value, heads, head size."""
    decoder = as_table(model.get("decoder"))
    layers = as_int(decoder.get("num_hidden_layers")) or 0
    heads = as_int(decoder.get("num_attention_heads")) or 0
    kv_heads = as_int(decoder.get("num_key_value_heads")) or heads
    hidden = as_int(decoder.get("hidden_size")) or 0
    head_size = as_int(decoder.get("head_size")) or (hidden // heads if heads else 0)
    return layers * 2 * kv_heads * head_size


def _named_files(model: dict[str, Any], options: dict[str, str]) -> Iterator[str]:
    """The files that genai_config.json names: graphs, and a provider's own weights."""
    for section in model.values():
        yield from _graphs_of(as_table(section))
    if options.get("external_data_file"):
        yield options["external_data_file"]


def _graphs_of(section: dict[str, Any]) -> Iterator[str]:
    if isinstance(section.get("filename"), str):
        yield section["filename"]
    stages = section.get("pipeline")
    for stage in stages if isinstance(stages, list) else []:
        for part in as_table(stage).values():
            yield from _graphs_of(as_table(part))


# --- whether the files are there -----------------------------------------------------------


def _check_files(folder: Path, model: dict[str, Any], options: dict[str, str]) -> GraphFacts:
    """Raises PackageError for the first file that is wrong; returns the decoder's facts."""
    if begins_with_bom(folder / CONFIG_FILE):
        raise PackageError(
            f"{CONFIG_FILE} begins with a byte order mark, which onnxruntime-genai cannot read.",
            next_step="Save it as UTF-8 without one.",
        )
    named = list(dict.fromkeys(_named_files(model, options)))
    for name in named:
        _check_name(name, CONFIG_FILE)
    if not any(name.endswith(".onnx") for name in named):
        raise PackageError(
            f"{CONFIG_FILE} names no .onnx file.", next_step="Download the package again."
        )
    for name in [*named, TOKENIZER_FILE]:
        _check_present(folder / name, name)
    first: GraphFacts | None = None
    for name in named:
        if name.endswith(".onnx"):
            facts = _check_graph(folder / name, name)
            first = first or facts
    return first or GraphFacts()


def _check_graph(path: Path, name: str) -> GraphFacts:
    facts = read_graph(path)
    if facts.error:
        raise PackageError(f"{name} {facts.error}.", next_step="Download it again.")
    for data, least in facts.external.items():
        _check_name(data, name)
        file = path.parent / data
        _check_present(file, data)
        size = file.stat().st_size
        if size < least:
            raise PackageError(
                f"{data} is cut short: it has {size:,} bytes, and {name} needs {least:,}.",
                next_step="Download it again.",
            )
    return facts


def _check_name(name: str, where: str) -> None:
    """A name must stay in the package's folder on every system, whoever wrote it."""
    windows, posix = PureWindowsPath(name), PurePosixPath(name)
    if windows.anchor or posix.is_absolute() or ".." in windows.parts or "\0" in name:
        raise PackageError(
            f"{where} names a file outside the package: {name!r}.",
            next_step="Do not use this package; get it from its owner again.",
        )


def _check_present(path: Path, name: str) -> None:
    if not path.is_file():
        raise PackageError(
            f"{name} is missing.", next_step="Download the package again, with all its files."
        )
    with path.open("rb") as stream:
        start = stream.read(len(_LFS_POINTER))
    if start == _LFS_POINTER:
        raise PackageError(
            f"{name} is a Git LFS pointer, not the file itself.",
            next_step="Run `git lfs pull` in its folder, or get it with `hf download`.",
        )
    if not start:
        raise PackageError(f"{name} is empty.", next_step="Download it again.")


def _files(folder: Path) -> tuple[tuple[str, int], ...]:
    """Every file's name relative to the folder, with ``/``, and its size in bytes."""
    found = []
    for path in folder.rglob("*"):
        relative = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in relative.parts):
            found.append((relative.as_posix(), path.stat().st_size))
    return tuple(sorted(found))


# --- what it was made for ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Provenance:
    """What our importer noted of a package's origin; empty strings where it did not make it."""

    name: str
    precision: str
    source_file: str
    source_sha256: str

    def describe(self) -> str:
        """In a few words, for a message."""
        if not self.source_sha256:
            return "not made by fimble"
        return f"{self.source_file}, {self.precision}"


def read_provenance(package: Package) -> Provenance:
    """The importer's note in the package; PackageError where it is damaged."""
    path = package.path / PROVENANCE_FILE
    note = read_json_object(path) if path.is_file() else {}
    source = as_table(note.get("source"))
    return Provenance(
        name=str(note.get("name", "")),
        precision=str(note.get("precision", "")),
        source_file=str(source.get("file", "")),
        source_sha256=str(source.get("sha256", "")),
    )


def _fills_in_the_middle(package: Package) -> bool:
    """Whether the model knows the fill-in-the-middle tokens *and* was trained on them.

    Every Qwen2.5 tokenizer has the tokens, a chat model's too, and chat templates are alike;
    what tells them apart is that the trained ones are called Coder: in the name of the
    package, of its folder, or of the model that it was made from.
    """
    tokens = read_json_object(package.path / TOKENIZER_FILE).get("added_tokens")
    contents = {as_table(t).get("content") for t in tokens} if isinstance(tokens, list) else set()
    if not contents >= _FIM_TOKENS:
        return False
    names = [package.name, package.path.name, read_provenance(package).name]
    if package.path.name.startswith("Upload "):  # AMD's name for it, in every repository
        names.append(package.path.parent.name)
    return any("coder" in name.lower() for name in names)
