"""LSP 3.18 as its own meta-model says it: whether a JSON value is of a type.

Stricter than an editor has to be: a property that the specification does not know is a fault, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["faults", "message_of", "reference"]

_FILE = Path(__file__).parent / "data" / "metaModel-3.18.json"
_ANYTHING = ("LSPAny", "LSPObject", "LSPArray")


@cache
def _tables() -> dict[str, dict[str, Any]]:
    model = json.loads(_FILE.read_text(encoding="utf-8"))
    messages = {each["method"]: each for each in model["requests"] + model["notifications"]}
    named = {
        kind: {each["name"]: each for each in model[kind]}
        for kind in ("structures", "enumerations", "typeAliases")
    }
    return {"messages": messages, **named}


def message_of(method: str) -> dict[str, Any] | None:
    """What the specification says of a method; None for one that it does not know."""
    return _tables()["messages"].get(method)


def reference(name: str) -> dict[str, Any]:
    """The type of that name."""
    return {"kind": "reference", "name": name}


def faults(kind: dict[str, Any] | None, value: Any, at: str = "") -> Iterator[str]:
    """Where ``value`` is not of a type of the meta-model; nothing where it is."""
    if kind is None:
        if value not in (None, {}):
            yield f"{at}: {value!r} where there is nothing"
        return
    yield from _CHECKS[kind["kind"]](kind, value, at)


def _base(kind: dict[str, Any], value: Any, at: str) -> Iterator[str]:
    whole = isinstance(value, int) and not isinstance(value, bool)
    right = {
        "string": isinstance(value, str),
        "URI": isinstance(value, str) and ":" in value,
        "DocumentUri": isinstance(value, str) and ":" in value,
        "RegExp": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "null": value is None,
        "integer": whole and -(2**31) <= value < 2**31,
        "uinteger": whole and 0 <= value < 2**31,
        "decimal": whole or isinstance(value, float),
    }
    if not right[kind["name"]]:
        yield f"{at}: {value!r} is no {kind['name']}"


def _reference(kind: dict[str, Any], value: Any, at: str) -> Iterator[str]:
    name, tables = kind["name"], _tables()
    if name in _ANYTHING:
        return
    if name in tables["typeAliases"]:
        yield from faults(tables["typeAliases"][name]["type"], value, at)
    elif name in tables["enumerations"]:
        enumeration = tables["enumerations"][name]
        if enumeration.get("supportsCustomValues"):
            yield from faults(enumeration["type"], value, at)
        elif value not in [each["value"] for each in enumeration["values"]]:
            yield f"{at}: {value!r} is no {name}"
    else:
        yield from _object(_properties(name), value, f"{at}({name})")


@cache
def _properties_of(name: str) -> tuple[dict[str, Any], ...]:
    structure = _tables()["structures"][name]
    inherited = [
        each
        for parent in structure.get("extends", []) + structure.get("mixins", [])
        for each in _properties_of(parent["name"])
    ]
    return (*inherited, *structure["properties"])


def _properties(name: str) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in _properties_of(name)}


def _object(properties: dict[str, dict[str, Any]], value: Any, at: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{at}: {value!r} is no object"
        return
    for name in value.keys() - properties.keys():
        yield f"{at}: {name} is unknown"
    for name, each in properties.items():
        if name in value:
            yield from faults(each["type"], value[name], f"{at}.{name}")
        elif not each.get("optional"):
            yield f"{at}: {name} is missing"


def _array(kind: dict[str, Any], value: Any, at: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{at}: {value!r} is no list"
        return
    for index, each in enumerate(value):
        yield from faults(kind["element"], each, f"{at}[{index}]")


def _tuple(kind: dict[str, Any], value: Any, at: str) -> Iterator[str]:
    if not isinstance(value, list) or len(value) != len(kind["items"]):
        yield f"{at}: {value!r} is no tuple of {len(kind['items'])}"
        return
    for index, (item, each) in enumerate(zip(kind["items"], value, strict=True)):
        yield from faults(item, each, f"{at}[{index}]")


def _map(kind: dict[str, Any], value: Any, at: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{at}: {value!r} is no map"
        return
    for name, each in value.items():
        yield from faults(kind["key"], name, f"{at} key")
        yield from faults(kind["value"], each, f"{at}[{name}]")


def _or(kind: dict[str, Any], value: Any, at: str) -> Iterator[str]:
    found = [list(faults(item, value, at)) for item in kind["items"]]
    if all(found):
        yield from min(found, key=len)


def _and(kind: dict[str, Any], value: Any, at: str) -> Iterator[str]:
    properties: dict[str, dict[str, Any]] = {}
    for item in kind["items"]:
        properties |= _properties(item["name"])
    yield from _object(properties, value, at)


def _literal(kind: dict[str, Any], value: Any, at: str) -> Iterator[str]:
    yield from _object({each["name"]: each for each in kind["value"]["properties"]}, value, at)


def _constant(kind: dict[str, Any], value: Any, at: str) -> Iterator[str]:
    if value != kind["value"]:
        yield f"{at}: {value!r} is not {kind['value']!r}"


_CHECKS = {
    "base": _base,
    "reference": _reference,
    "array": _array,
    "tuple": _tuple,
    "map": _map,
    "or": _or,
    "and": _and,
    "literal": _literal,
    "stringLiteral": _constant,
    "integerLiteral": _constant,
    "booleanLiteral": _constant,
}
