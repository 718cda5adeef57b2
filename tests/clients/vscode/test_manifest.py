"""What the extension's manifest says: the server's settings, and nothing that is not public.

Needs no Node and no editor.
"""

from __future__ import annotations

import dataclasses
import json
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from fimble.lsp.settings import Settings

EXTENSION = Path(__file__).resolve().parents[3] / "clients" / "vscode"
MANIFEST: dict[str, Any] = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
CONTRIBUTED: dict[str, dict[str, Any]] = MANIFEST["contributes"]["configuration"]["properties"]
SOURCES = sorted((EXTENSION / "src").rglob("*.ts"))


def server_settings(cls: Any = Settings, prefix: str = "fimble.") -> Iterator[tuple[str, Any, Any]]:
    """(key, type, field) of every setting of the server."""
    types_of = typing.get_type_hints(cls)
    for item in dataclasses.fields(cls):
        first, *others = item.name.split("_")
        key = prefix + first + "".join(word.capitalize() for word in others)
        if dataclasses.is_dataclass(types_of[item.name]):
            yield from server_settings(types_of[item.name], f"{key}.")
        else:
            yield key, types_of[item.name], item


def schema_of(kind: Any, item: dataclasses.Field[Any]) -> dict[str, Any]:
    """What the manifest must say of a field of the server's."""
    limits = {key: item.metadata[key] for key in ("minimum", "maximum") if key in item.metadata}
    if typing.get_origin(kind) is Literal:
        return {"type": "string", "enum": list(typing.get_args(kind)), "default": item.default}
    if kind is bool:
        return {"type": "boolean", "default": item.default}
    if kind in (int, float):
        return {"type": {int: "integer", float: "number"}[kind], "default": item.default, **limits}
    if kind is str:
        return {"type": "string", "default": item.default}
    return {"type": "array", "items": {"type": "string"}, "default": []}


@pytest.mark.parametrize(
    ("key", "kind", "item"), [pytest.param(*each, id=each[0]) for each in server_settings()]
)
def test_a_setting_of_the_server_is_contributed_as_it_is(key: str, kind: Any, item: Any) -> None:
    expected = schema_of(kind, item)
    assert {name: CONTRIBUTED[key].get(name) for name in expected} == expected
    assert CONTRIBUTED[key]["markdownDescription"]


def test_all_other_settings_are_the_editors_own() -> None:
    others = set(CONTRIBUTED) - {key for key, _, _ in server_settings()}

    assert all(re.match(r"fimble\.(client|trace)\.", key) for key in others)


def test_a_workspace_cannot_name_the_program_that_is_run() -> None:
    restricted = MANIFEST["capabilities"]["untrustedWorkspaces"]

    assert CONTRIBUTED["fimble.client.serverPath"]["scope"] == "machine"
    assert "fimble.client.serverPath" in restricted["restrictedConfigurations"]
    assert restricted["supported"] == "limited"


def test_no_proposed_api_is_asked_for() -> None:
    assert "enabledApiProposals" not in MANIFEST
    assert not list((EXTENSION / "src").rglob("vscode.proposed.*"))
    for file in SOURCES:
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"\bas any\b|@ts-ignore|@ts-expect-error", text), file
    # Types of the oldest version that is supported: tsc refuses whatever it does not have.
    oldest = MANIFEST["engines"]["vscode"].removeprefix("^")
    assert MANIFEST["devDependencies"]["@types/vscode"] == oldest


def test_every_command_has_a_title_and_is_registered() -> None:
    text = "\n".join(file.read_text(encoding="utf-8") for file in SOURCES)
    for command in MANIFEST["contributes"]["commands"]:
        name = command["command"].removeprefix("fimble.")
        assert command["title"] and command["category"] == "fimble"
        assert re.search(rf"\b{name}\b", text), command


def test_every_key_is_of_a_command() -> None:
    commands = {command["command"] for command in MANIFEST["contributes"]["commands"]}

    assert {key["command"] for key in MANIFEST["contributes"]["keybindings"]} <= commands


def test_every_file_that_the_manifest_names_is_there() -> None:
    text = json.dumps(MANIFEST)
    for name in re.findall(r'"(media/[^"]+)"', text):
        assert (EXTENSION / name).is_file(), name


def test_the_chats_page_has_no_colour_but_the_themes() -> None:
    style = (EXTENSION / "media" / "chat.css").read_text(encoding="utf-8")
    for name, value in re.findall(r"([\w-]+): ([^;{}]+);", style):
        if re.search(r"color|background|^border|^outline", name):
            plain = re.sub(
                r"var\(--vscode-[\w-]+|[(),]|\b(transparent|inherit|none|solid|\d+px)\b", "", value
            )
            assert not plain.strip() or name in ("border-radius", "border-collapse"), (name, value)


def test_the_version_is_the_servers() -> None:
    from fimble import __version__

    assert MANIFEST["version"] == __version__
