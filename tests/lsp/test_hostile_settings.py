"""Whatever a workspace writes into its settings: no path, command, address or library comes of it.

The fields are taken from the settings' own classes, so that a new one is tested when it is made.
"""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fimble.engine.client import LocalEngine
from fimble.engine.connect import connect
from fimble.engine.remote.choice import EngineChoice, write_choice
from fimble.engine.remote.endpoint import Endpoint
from fimble.lsp.settings import Settings, merge_settings, parse_settings, settings_of
from fimble.models.genai_config import SETTABLE


def leaves(cls: Any = Settings, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Key, type and metadata of each setting."""
    types_of = typing.get_type_hints(cls)
    for item in dataclasses.fields(cls):
        first, *others = item.name.split("_")
        key = prefix + first + "".join(word.capitalize() for word in others)
        if dataclasses.is_dataclass(types_of[item.name]):
            yield from leaves(types_of[item.name], f"{key}.")
        else:
            yield key, types_of[item.name], item.metadata


FIELDS = {key: (kind, metadata) for key, kind, metadata in leaves()}
#: Lists of words that are only compared: with language ids, and with paths that are not opened.
ONLY_COMPARED = {"completion.disabledLanguages", "completion.excludePatterns"}

HOSTILE = [
    "../../evil", "/tmp/evil", "C:\\evil", "\\\\host\\share\\evil", "~/evil", "./evil", "evil/",
    "file:///tmp/evil", "http://evil.example/v1", "https://evil.example", "evil.example:80",
    "$(touch evil)", "`touch evil`", "; rm -rf /", "| sh", "%COMSPEC%", "${HOME}", "$HOME",
    "libevil.so", "evil.dll", "/usr/lib/evil.so", "python -c evil", "cmd.exe /c evil",
    "{{ ''.__class__ }}", "{% include '/etc/passwd' %}", "{evil}", "--provider=evil", "-evil",
    "evil\x00", "evil\n", "\u202eevil", "CPU\n", "", " ", "..", ".", "con", "a" * 10_000,
]  # fmt: skip
MORE_KEYS = [
    "command", "interpreter", "python", "path", "server", "url", "engine.url", "engine.completion",
    "engine.chat", "engine.key", "engine.library", "engine.forbidRemote", "templates", "modelPath",
    "chat.template", "env", "args", "home", "client.path", "__class__", "engine.__init__", "",
]  # fmt: skip
TEXT = st.sampled_from(HOSTILE) | st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*FIELDS, *MORE_KEYS]) | TEXT, inner, max_size=4)
    ),
    max_leaves=10,
)
SENT = st.dictionaries(st.sampled_from([*FIELDS, *MORE_KEYS]), JSON, max_size=8) | JSON


def values(settings: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for (key, *_), value in zip(leaves(), _flat(settings), strict=True):
        yield prefix + key, value


def _flat(settings: Any) -> Iterator[Any]:
    for item in dataclasses.fields(settings):
        value = getattr(settings, item.name)
        if dataclasses.is_dataclass(value):
            yield from _flat(value)
        else:
            yield value


def check(settings: Settings) -> None:
    for key, value in values(settings):
        kind, metadata = FIELDS[key]
        if kind in (bool, int, float):
            assert type(value) in ((int, float) if kind is float else (kind,)), key
            if kind is not bool:
                assert metadata["minimum"] <= value <= metadata["maximum"], key
        elif typing.get_origin(kind) is Literal:
            assert value in typing.get_args(kind), key
        elif key in ONLY_COMPARED:
            assert all(isinstance(each, str) for each in value), key
        else:
            # A name: of an installed package, or of a provider that we know.
            assert kind is str and "check" in metadata, f"{key}: nothing checks it"
            assert re.fullmatch(r"[A-Za-z0-9._-]*", value, re.ASCII), key
            assert not value.startswith((".", "-")), key
            if key.lower().endswith("provider"):
                assert value == "" or value.lower() in SETTABLE, key


@given(SENT, SENT)
def test_whatever_is_sent_gives_numbers_switches_and_checked_names(base: Any, over: Any) -> None:
    for raw in (base, over, merge_settings(base, over)):
        settings, problems = parse_settings(raw)
        check(settings)
        assert all(isinstance(problem, str) for problem in problems)


@pytest.mark.parametrize("key", FIELDS)
def test_no_field_takes_a_hostile_word(key: str) -> None:
    for text in HOSTILE:
        for value in (text, [text], {"": text}):
            check(parse_settings({key: value})[0])


def test_nothing_in_the_settings_chooses_a_server() -> None:
    """Only ``forbidRemote`` is about it, which can only forbid."""
    about = [key for key in FIELDS if key.startswith("engine.")]
    assert about == ["engine.forbidRemote"]
    words = ("url", "host", "path", "command", "library", "secret", "template", "interpreter")
    assert not [key for key in FIELDS if any(word in key.lower() for word in words)]


@given(JSON)
def test_what_was_forbidden_when_the_editor_started_stays_forbidden(value: Any) -> None:
    """What comes later lies over it, and may be a workspace's."""
    options = {"engine": {"forbidRemote": True}}
    for section in ({"engine": {"forbidRemote": value}}, {"engine.forbidRemote": value}, value):
        settings, _ = settings_of(options, section)
        assert settings.engine.forbid_remote is True


def test_a_workspace_can_forbid_a_server_and_never_bring_one_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path))
    box = Endpoint.at("https://box.example", model="m")
    write_choice(EngineChoice(completion=box, chat=box))
    monkeypatch.setenv("FIMBLE_FORBID_REMOTE", "1")
    for forbids in (True, False):
        settings, _ = parse_settings({"engine": {"forbidRemote": forbids}})
        remote = not settings.engine.forbid_remote
        assert isinstance(connect("completion", remote=remote), LocalEngine)
        assert isinstance(connect("chat", remote=remote), LocalEngine)
