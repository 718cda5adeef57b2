"""The recorder that all sessions run under finds what it should."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lsp.conformance import FOUND, Conformance

PROGRESS = {"jsonrpc": "2.0", "method": "$/progress"}
ANSWER = {"jsonrpc": "2.0", "id": 1}


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ({"jsonrpc": "2.0", "error": {"code": 1, "message": ""}}, "an answer has an id"),
        ({**ANSWER, "result": [{"title": "t", "colour": 1}]}, "colour is unknown"),
        ({**ANSWER, "result": [{"title": "t", "isPreferred": True}]}, "isPreferredSupport"),
        ({**ANSWER, "id": 2, "result": None}, "an answer to nothing"),
        ({"jsonrpc": "2.0", "method": "window/showMessage", "params": {"type": 9}}, "9"),
        ({"jsonrpc": "2.0", "id": 5, "method": "workspace/applyEdit", "params": {}}, "announce"),
        ({"jsonrpc": "2.0", "method": "other/thing", "params": {}}, "unknown"),
        ({**PROGRESS, "params": {"token": "t", "value": {"kind": "begin"}}}, "nobody gave"),
    ],
)
def test_what_is_not_as_the_specification_says_is_found(message: Any, fault: str) -> None:
    session = Conformance()
    abilities: dict[str, Any] = {"textDocument": {"codeAction": {"codeActionLiteralSupport": {}}}}
    session.sent({"id": 0, "method": "initialize", "params": {"capabilities": abilities}})
    session.sent({"id": 1, "method": "textDocument/codeAction", "params": {}})
    session.received(message)
    found, FOUND[:] = list(FOUND), []
    assert any(fault in each for each in found), found
