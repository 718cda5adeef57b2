"""Values out of a configuration by key, each with its type and range checked.

What is wrong is collected as sentences, so that a reader can go on and the user hears of the
first fault by the key's full name. Knows nothing of what the keys mean.
"""

from __future__ import annotations

import math
from typing import Any

__all__ = ["INT32_MAX", "ConfigValues"]

INT32_MAX = 2**31 - 1
"""What onnxruntime-genai holds its whole numbers in."""

_NONE = object()


class ConfigValues:
    """``faults`` has a sentence for each value of a wrong type or out of its range.

    ``nulls``: a null counts as not stated; onnxruntime-genai itself takes none.
    """

    def __init__(self, *, nulls: bool = False) -> None:
        self.faults: list[str] = []
        self._nulls = nulls

    def table(self, parent: dict[str, Any], key: str, where: str = "") -> dict[str, Any]:
        """The object under ``key``; empty where there is none."""
        value = self._stated(parent, key, {})
        if isinstance(value, dict):
            return value
        self._fault(where, key, value, "an object")
        return {}

    def list(self, parent: dict[str, Any], key: str, where: str = "") -> list[Any]:
        """The array under ``key``; empty where there is none."""
        value = self._stated(parent, key, [])
        if isinstance(value, list):
            return value
        self._fault(where, key, value, "an array")
        return []

    def text(self, parent: dict[str, Any], key: str, where: str = "") -> str:
        """The string under ``key``; empty where there is none."""
        value = self._stated(parent, key, "")
        if isinstance(value, str):
            return value
        self._fault(where, key, value, "a string")
        return ""

    def flag(self, parent: dict[str, Any], key: str, where: str = "") -> bool | None:
        """True or false; None where neither is stated."""
        value = self._stated(parent, key, _NONE)
        if value is _NONE:
            return None
        if isinstance(value, bool):
            return value
        self._fault(where, key, value, "true or false")
        return None

    def count(
        self,
        parent: dict[str, Any],
        key: str,
        where: str = "",
        *,
        least: int = 1,
        most: int = INT32_MAX,
    ) -> int | None:
        """A whole number from ``least`` to ``most``; None where none is stated."""
        value = self._stated(parent, key, _NONE)
        if value is _NONE:
            return None
        # 32768.0 is a whole number to the runtime too.
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self._fault(where, key, value, f"a whole number from {least:,} to {most:,}")
        return None

    def digits(
        self, parent: dict[str, str], key: str, where: str = "", *, most: int = INT32_MAX
    ) -> int | None:
        """A whole number above 0 that is written as a string, as providers' options are."""
        value = parent.get(key)
        if value is None:
            return None
        plain = value.strip()
        if plain.isascii() and plain.isdigit() and len(plain) <= 12 and 0 < int(plain) <= most:
            return int(plain)
        self._fault(where, key, value, f'a whole number from "1" to "{most}"')
        return None

    def number(self, parent: dict[str, Any], key: str, where: str = "") -> float | None:
        """A finite number that is not negative; None where none is stated."""
        value = self._stated(parent, key, _NONE)
        if value is _NONE:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                found = float(value)
            except OverflowError:
                found = math.inf
            if math.isfinite(found) and found >= 0:
                return found
        self._fault(where, key, value, "a number that is not negative")
        return None

    def _stated(self, parent: dict[str, Any], key: str, otherwise: Any) -> Any:
        if key not in parent or (self._nulls and parent[key] is None):
            return otherwise
        return parent[key]

    def _fault(self, where: str, key: str, value: object, wanted: str) -> None:
        name = f"{where}.{key}" if where else key
        try:
            shown = repr(value)
        except ValueError:  # a whole number of thousands of digits
            shown = "a huge number"
        if len(shown) > 40:
            shown = f"{shown[:37]}…"
        self.faults.append(f"{name} is {shown}, not {wanted}")
