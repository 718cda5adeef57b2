"""What a package is, how large its window is, and what is wrong with its files.

Puts together what the readers beside it find. Loads nothing into a runtime and asks nothing
of this machine: whether it could run here is report.py's question.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from fimble.errors import PackageError
from fimble.models.genai_config import (
    CONFIG_FILE,
    Decoder,
    GenaiConfig,
    Provider,
    Sampling,
    read_genai_config,
)
from fimble.models.package_extras import PackageExtras, read_extras
from fimble.models.package_files import TOKENIZER_FILE, CheckedFiles, check_files, list_files
from fimble.models.package_json import as_table, read_json_object
from fimble.models.provenance import Provenance, read_provenance
from fimble.models.store import Package
from fimble.models.window import Window, real_window

__all__ = ["Inspection", "Provenance", "inspect_package", "read_provenance", "release_in"]

_FIM_TOKENS = frozenset({"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"})
_FP16_BYTES = 2  # what the KV cache of a GPU or NPU package consists of
_RELEASE = re.compile(r"(?:^|[_-])rai[_-](\d{1,4}(?:\.\d{1,4}){1,3})(?=$|[_-])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Inspection:
    """A package by its own account.

    ``kv_element_bytes`` is the size of one number in the KV cache. ``weights_bytes`` is what
    the weights take up, on disk and about so in memory; 0 where files are missing. ``fim``:
    it can fill in the middle. ``release`` is the Ryzen AI release it was made for, or empty.
    ``problem`` and ``next_step`` are None for a package whose files are whole.
    """

    name: str
    config: GenaiConfig
    window: Window
    extras: PackageExtras
    kv_element_bytes: int
    weights_bytes: int
    domains: frozenset[str]
    fim: bool
    quantisation: str
    release: str
    origin: str
    files: tuple[tuple[str, int], ...]
    problem: str | None = None
    next_step: str | None = None

    @property
    def model_type(self) -> str:
        """The architecture, in the runtime's words."""
        return self.config.model_type

    @property
    def decoder(self) -> Decoder:
        """The model's shape."""
        return self.config.decoder

    @property
    def provider(self) -> Provider:
        """The provider that computes; "CPU" where the package names none."""
        return self.config.provider

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of KV cache a token of one sequence: key and value, in each layer."""
        shape = self.decoder
        return shape.layers * 2 * shape.kv_heads * shape.head_size * self.kv_element_bytes

    @property
    def kv_bytes_at_window(self) -> int:
        """Bytes of KV cache for one sequence that fills the window."""
        return self.kv_bytes_per_token * self.window.tokens

    @property
    def sampling(self) -> Sampling:
        """Defaults for choosing tokens: the runtime's settings, then generation_config.json."""
        own, other = self.config.search.sampling, self.extras.sampling

        def first(name: str) -> float | int | None:
            value: float | int | None = getattr(own, name)
            return getattr(other, name) if value is None else value

        return Sampling(**{name: first(name) for name in Sampling.__slots__})  # type: ignore[arg-type]

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong with the files."""
        return self.problem is None


def inspect_package(package: Package) -> Inspection:
    """Looks at every file that the package needs.

    Raises PackageError only where genai_config.json is missing or unreadable; what else is
    wrong is ``problem`` in the result.
    """
    config = read_genai_config(package.path)
    window = real_window(config)
    checked, fim, origin = CheckedFiles(), False, Provenance()
    names = _names(package)
    problem = next_step = None
    try:
        checked = check_files(package.path, config)
        origin = read_provenance(package)
        names += [origin.name]
        fim = _fills_in_the_middle(package.path, names)
        _check_window(window)
    except PackageError as error:
        problem, next_step = error.message, error.next_step
    except OSError as error:
        problem = f"{error.filename or package.path} cannot be read: {error.strerror or error}."
        next_step = "Check the permissions of the package's files."
    extras = read_extras(package.path)
    return Inspection(
        name=package.name,
        config=config,
        window=window,
        extras=extras,
        kv_element_bytes=checked.graph.kv_element_bytes or _FP16_BYTES,
        weights_bytes=checked.weights_bytes,
        domains=checked.domains,
        fim=fim,
        quantisation=checked.graph.quantisation or extras.quantisation,
        release=next(filter(None, map(release_in, names)), ""),
        origin=origin.describe(),
        files=list_files(package.path),
        problem=problem,
        next_step=next_step,
    )


def release_in(name: str) -> str:
    """The Ryzen AI release in a package's name: "1.7.1" of ``…_rai_1.7.1_hybrid``; or empty."""
    found = _RELEASE.search(name)
    return found[1] if found else ""


def _names(package: Package) -> list[str]:
    """What the package is called: by the user, by its folder, by the folder around that."""
    names = [package.name, package.path.name]
    if package.path.name.startswith("Upload "):  # AMD's name for it, in every repository
        names.append(package.path.parent.name)
    return names


def _check_window(window: Window) -> None:
    if window.faults:
        raise PackageError(
            f"{CONFIG_FILE} cannot be meant: {window.faults[0]}.",
            next_step="Download the package again, or mend that value.",
        )
    if window.tokens == 0:
        raise PackageError(
            f"{CONFIG_FILE} does not say how long the model's context is.",
            next_step="Set context_length under model.",
        )


def _fills_in_the_middle(folder: Path, names: list[str]) -> bool:
    """Whether the model knows the fill-in-the-middle tokens *and* was trained on them.

    Every Qwen2.5 tokenizer has the tokens, a chat model's too, and chat templates are alike;
    what tells them apart is that the trained ones are called Coder: in the name of the
    package, of its folder, or of the model that it was made from.
    """
    tokens = read_json_object(folder / TOKENIZER_FILE).get("added_tokens")
    contents = {as_table(t).get("content") for t in tokens} if isinstance(tokens, list) else set()
    spelled = {each for each in contents if isinstance(each, str)}
    return spelled >= _FIM_TOKENS and any("coder" in name.lower() for name in names)
