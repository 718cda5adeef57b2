"""What a package says of itself beside genai_config.json, where it says it at all.

generation_config.json (sampling), config.json (architecture, quantisation), model_config.json
(AMD's own), tokenizer_config.json and chat_template.jinja (the chat template). None of them
is needed to run the model: one that cannot be read is a sentence in ``notes``, not an error.
Never renders a template.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fimble.errors import PackageError
from fimble.models.config_values import ConfigValues
from fimble.models.genai_config import Sampling
from fimble.models.package_json import as_table, read_json_object

__all__ = ["PackageExtras", "read_chat_template", "read_extras"]

_TEMPLATE_FILE = "chat_template.jinja"
_LARGEST = 8 << 20  # bytes; tokenizer_config.json lists every added token
_LARGEST_TEMPLATE = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class PackageExtras:
    """``architectures`` and ``quantisation`` are config.json's own words, or empty.

    ``chat_template`` is the name of the file that has one, or empty. ``max_positions`` is
    what the model was trained for, in tokens; it limits nothing at run time.
    """

    sampling: Sampling = field(default_factory=Sampling)
    architectures: tuple[str, ...] = ()
    quantisation: str = ""
    max_positions: int | None = None
    chat_template: str = ""
    notes: tuple[str, ...] = ()


def read_extras(folder: Path) -> PackageExtras:
    """Reads what there is; never raises for what a file holds."""
    notes: list[str] = []
    generation = _optional(folder / "generation_config.json", notes)
    config = _optional(folder / "config.json", notes)
    model_config = _optional(folder / "model_config.json", notes)
    values = ConfigValues(nulls=True)
    listed = values.list(config, "architectures")
    quantised = as_table(config.get("quantization_config"))
    quantised = quantised or as_table(model_config.get("quantization_config"))
    extras = PackageExtras(
        sampling=Sampling(
            do_sample=values.flag(generation, "do_sample"),
            temperature=values.number(generation, "temperature"),
            top_k=values.count(generation, "top_k", least=0),
            top_p=values.number(generation, "top_p"),
            repetition_penalty=values.number(generation, "repetition_penalty"),
            num_beams=values.count(generation, "num_beams"),
        ),
        architectures=tuple(each[:80] for each in listed if isinstance(each, str))[:8],
        quantisation=values.text(quantised, "quant_method")[:80],
        max_positions=values.count(config, "max_position_embeddings"),
        chat_template=_template_file(folder, notes),
    )
    return replace(extras, notes=(*notes, *values.faults))


def read_chat_template(folder: Path) -> str | None:
    """The template of a package, or None if it has none. PackageError where it is unreadable."""
    path = folder / _TEMPLATE_FILE
    if path.is_file():
        return _template_text(path)
    config = folder / "tokenizer_config.json"
    if not config.is_file():
        return None
    template = read_json_object(config, largest=_LARGEST).get("chat_template")
    if isinstance(template, list):
        # Several by name, as some tokenizers have them.
        named = {
            str(as_table(each).get("name")): as_table(each).get("template") for each in template
        }
        template = named.get("default")
    return template if isinstance(template, str) else None


def _template_text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            raw = stream.read(_LARGEST_TEMPLATE + 1)
        if len(raw) > _LARGEST_TEMPLATE:
            raise PackageError(
                f"{path} is larger than {_LARGEST_TEMPLATE:,} bytes, which no template is.",
                next_step="Do not use this package; get it from its owner again.",
            )
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise PackageError(
            f"{path} cannot be read: {error.strerror or error}.",
            next_step="Check the permissions of the package's files.",
        ) from error
    except UnicodeDecodeError as error:
        raise PackageError(
            f"{path} is not UTF-8 text.", next_step=f"Download {path.name} again."
        ) from error


def _template_file(folder: Path, notes: list[str]) -> str:
    try:
        template = read_chat_template(folder)
    except PackageError as error:
        notes.append(error.message.rstrip("."))
        return ""
    if template is None:
        return ""
    own = (folder / _TEMPLATE_FILE).is_file()
    return _TEMPLATE_FILE if own else "tokenizer_config.json"


def _optional(path: Path, notes: list[str]) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        return read_json_object(path, largest=_LARGEST)
    except PackageError as error:
        notes.append(error.message.rstrip("."))
        return {}
