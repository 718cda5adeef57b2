"""The user's settings: read from what an editor sends, checked, with defaults for the rest.

The dataclasses are the specification: their fields are the keys (``max_tokens`` is
``maxTokens``), their types and metadata the values that are allowed. A wrong value never
stops anything: it is named, and the default is used.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fimble.assist.settings import ChatSettings, CompletionSettings, EditSettings
from fimble.models.genai_config import SETTABLE

__all__ = [
    "EngineSettings",
    "LogSettings",
    "Settings",
    "merge_settings",
    "parse_settings",
    "settings_of",
]

#: Keys below these belong to the editor's side of an extension and are never looked at.
_NOT_OURS = ("client", "trace")


def _check_package_name(value: str) -> str | None:
    """Why ``value`` is not a model's name; None if it is one.

    A workspace can bring settings along. A path there would make us load whatever package
    lies in that workspace, so only names of installed packages are taken.
    """
    if value and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", value):
        return "the name of an installed package, never a path"
    return None


def _check_provider(value: str) -> str | None:
    """Why ``value`` is no provider; None if it is one, or nothing is set."""
    if value and value.lower() not in SETTABLE:
        return f"one of {', '.join(SETTABLE)}, or empty for the package's own provider"
    return None


@dataclass(frozen=True, slots=True)
class LogSettings:
    """``level`` is what the server's log has at least; ``debug`` also goes to standard error."""

    level: Literal["error", "warning", "info", "debug"] = "info"


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """``forbid_remote``: no server elsewhere is asked, whatever was chosen. There is no setting
    that could choose one: a workspace might bring it along.
    """

    forbid_remote: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings. ``model`` names a package; "" leaves the choice to the engine. ``provider``
    is what computes it; "" is the package's own.

    ``chat_model`` is another one for chat and edits, with ``chat_provider``; "" means the same
    model for all. ``statistics`` lets numbers about suggestions be kept on this machine.
    """

    chat: ChatSettings = field(default_factory=ChatSettings)
    chat_model: str = field(default="", metadata={"check": _check_package_name})
    chat_provider: str = field(default="", metadata={"check": _check_provider})
    completion: CompletionSettings = field(default_factory=CompletionSettings)
    edit: EditSettings = field(default_factory=EditSettings)
    engine: EngineSettings = field(default_factory=EngineSettings)
    log: LogSettings = field(default_factory=LogSettings)
    model: str = field(default="", metadata={"check": _check_package_name})
    provider: str = field(default="", metadata={"check": _check_provider})
    statistics: bool = True


def parse_settings(raw: Any) -> tuple[Settings, list[str]]:
    """The settings in ``raw``, and a sentence for everything in it that cannot be meant.

    ``raw`` is what an editor sent: nested objects, or keys with dots in them, or nothing.
    """
    if raw is None:
        return Settings(), []
    if not isinstance(raw, Mapping):
        return Settings(), [f"The settings must be an object; got {_shown(raw)}."]
    nested, problems = _nested(raw)
    settings = _read(Settings, nested, "", problems)
    assert isinstance(settings, Settings)
    return settings, problems


def settings_of(options: Any, section: Any) -> tuple[Settings, list[str]]:
    """The settings of ``section`` on top of ``options``, which the editor started with.

    What was forbidden at the start stays so: what comes later may be a workspace's.
    """
    settings, problems = parse_settings(merge_settings(options, section))
    if parse_settings(options)[0].engine.forbid_remote:
        settings = dataclasses.replace(settings, engine=EngineSettings(forbid_remote=True))
    return settings, problems


def merge_settings(base: Any, over: Any) -> Any:
    """``over`` on top of ``base``, key by key; neither is checked."""
    if not isinstance(base, Mapping) or not isinstance(over, Mapping):
        return base if over is None else over
    merged = dict(_nested(base)[0])
    for key, value in _nested(over)[0].items():
        merged[key] = merge_settings(merged[key], value) if key in merged else value
    return merged


def _nested(raw: Mapping[Any, Any]) -> tuple[dict[str, Any], list[str]]:
    """``{"a.b": 1}`` as ``{"a": {"b": 1}}``, and what cannot be put that way."""
    result: dict[str, Any] = {}
    problems = []
    for key, value in raw.items():
        *sections, last = str(key).split(".")
        target = result
        for section in sections:
            inner = target.setdefault(section, {})
            if not isinstance(inner, dict):
                inner = {}
                problems.append(f"{section} is set twice, as a value and as a section.")
                target[section] = inner
            target = inner
        value = dict(value) if isinstance(value, Mapping) else value
        if isinstance(value, dict) and isinstance(target.get(last), dict):
            target[last] = {**target[last], **value}
        else:
            target[last] = value
    return result, problems


def _read(cls: Any, raw: Mapping[str, Any], prefix: str, problems: list[str]) -> Any:
    """An instance of the settings class ``cls`` from ``raw``; adds to ``problems``."""
    types_of = typing.get_type_hints(cls)
    known = {_key(item.name): item for item in dataclasses.fields(cls)}
    values = {}
    for key, value in raw.items():
        item = known.get(key)
        if item is None:
            if prefix or key not in _NOT_OURS:
                problems.append(_unknown(prefix + str(key)))
            continue
        expected = types_of[item.name]
        if dataclasses.is_dataclass(expected):
            values[item.name] = _read_section(expected, value, prefix + key, problems)
            continue
        wanted = _mismatch(value, expected, item.metadata)
        if wanted is None:
            values[item.name] = tuple(value) if isinstance(value, list) else value
        else:
            problems.append(
                f"{prefix}{key} must be {wanted}; got {_shown(value)}. "
                f"The default is used: {_shown(item.default)}."
            )
    return cls(**values)


def _read_section(cls: Any, raw: Any, name: str, problems: list[str]) -> Any:
    if isinstance(raw, Mapping):
        return _read(cls, raw, f"{name}.", problems)
    if raw is not None:
        problems.append(f"{name} must be an object; got {_shown(raw)}.")
    return cls()


def _mismatch(value: Any, expected: Any, limits: Mapping[str, Any]) -> str | None:
    """What was expected instead of ``value``; None if it is right."""
    if typing.get_origin(expected) is Literal:
        choices = typing.get_args(expected)
        return None if value in choices else f"one of {', '.join(choices)}"
    if expected is bool:
        return None if isinstance(value, bool) else "true or false"
    if expected is int:
        low, high = limits["minimum"], limits["maximum"]
        right = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        return None if right else f"a whole number from {low} to {high}"
    if expected is float:
        low, high = limits["minimum"], limits["maximum"]
        right = isinstance(value, int | float) and not isinstance(value, bool)
        return None if right and low <= value <= high else f"a number from {low} to {high}"
    if expected is str:
        if not isinstance(value, str):
            return "a string"
        check = limits.get("check")
        return check(value) if check else None
    right = isinstance(value, list) and all(isinstance(part, str) for part in value)
    return None if right else "a list of strings"


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, list(_all_keys(Settings, "")), n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return f"{name} is not a setting.{hint}"


def _all_keys(cls: Any, prefix: str) -> Iterator[str]:
    types_of = typing.get_type_hints(cls)
    for item in dataclasses.fields(cls):
        name = prefix + _key(item.name)
        if dataclasses.is_dataclass(types_of[item.name]):
            yield from _all_keys(types_of[item.name], f"{name}.")
        else:
            yield name


def _key(field_name: str) -> str:
    """``max_tokens`` → ``maxTokens``."""
    first, *others = field_name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _shown(value: Any) -> str:
    """A value for a message, in JSON's spelling where it is short."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        value = list(value)
    text = f'"{value}"' if isinstance(value, str) else "nothing" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
