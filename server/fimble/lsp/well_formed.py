"""What the other side may send: messages of JSON-RPC, with values of the types that LSP says.

pygls and cattrs turn what is wrong into something right: a text of ``null`` becomes ``"None"``,
the id 1.5 becomes 1, and an object of a request that LSP does not know becomes a tuple whose
names may be changed. Here it is refused, or kept as it came.
"""

from __future__ import annotations

from typing import Any

from cattrs import Converter
from lsprotocol import converters, types
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
)

__all__ = [
    "id_of",
    "is_id",
    "is_message",
    "strict_converter",
    "takes_no_answer",
    "without_needless_params",
]


def is_id(value: Any) -> bool:
    """Whether ``value`` may name a request: LSP allows strings and integers."""
    return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))


def id_of(message: Any) -> str | int | None:
    """The id to answer a message with that cannot be handled; None where it has no right one."""
    found = message.get("id") if isinstance(message, dict) else None
    return found if is_id(found) else None


def is_message(message: Any) -> bool:
    """Whether a JSON value is a request, a notification or a response."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return False
    if "method" not in message:
        answers = message.get("id") is None or is_id(message["id"])
        return "id" in message and answers and ("result" in message or "error" in message)
    params = message.get("params")
    return (
        isinstance(message["method"], str)
        and ("id" not in message or is_id(message["id"]))
        and (params is None or isinstance(params, dict | list))
    )


def takes_no_answer(method: str) -> bool:
    """Whether LSP knows ``method`` as a notification, which cannot be sent as a request."""
    known = types.METHOD_TO_TYPES.get(method)
    return known is not None and known[1] is None


def without_needless_params(message: dict[str, Any]) -> dict[str, Any]:
    """The message without an object that its method has no use for; Kate sends an empty one."""
    if message.get("method") in (types.SHUTDOWN, types.EXIT):
        return {name: value for name, value in message.items() if name != "params"}
    return message


def strict_converter() -> Converter:
    """lsprotocol's converter, which takes no value for one of another type."""
    converter = converters.get_converter()
    converter.register_structure_hook(str, _string)
    converter.register_structure_hook(int, _integer)
    converter.register_structure_hook(float, _number)
    converter.register_structure_hook(bool, _boolean)
    converter.register_structure_hook(JsonRPCRequestMessage, _request)
    converter.register_structure_hook(JsonRPCNotification, _notification)
    converter.register_structure_hook(JsonRPCResponseMessage, _response)
    return converter


def _string(value: Any, _: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a string")
    return value


def _integer(value: Any, _: Any) -> int:
    # Some editors write whole numbers as 1.0.
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("not an integer")
    return value


def _number(value: Any, _: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError("not a number")
    return float(value)


def _boolean(value: Any, _: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("neither true nor false")
    return value


def _request(value: Any, _: Any) -> JsonRPCRequestMessage:
    return JsonRPCRequestMessage(
        value["id"], value["method"], value["jsonrpc"], value.get("params")
    )


def _notification(value: Any, _: Any) -> JsonRPCNotification:
    return JsonRPCNotification(value["method"], value["jsonrpc"], value.get("params"))


def _response(value: Any, _: Any) -> JsonRPCResponseMessage:
    return JsonRPCResponseMessage(value["id"], value["jsonrpc"], value.get("result"))
