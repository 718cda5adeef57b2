"""What a session's server sends, held against LSP 3.18 and against what its client announced.

``Wire`` tells a ``Conformance`` of every message; the fixture ``conforming`` of ``conftest`` lets a
test fail in which anything was found.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.lsp.meta_model import faults, message_of, reference

__all__ = ["FOUND", "Conformance"]

#: What was found since the test began.
FOUND: list[str] = []

#: May be sent to any client: its capability is about something more.
_ALWAYS = ("window/showMessage",)
_ERROR = {"code", "message", "data"}
_PROGRESS = {
    "begin": "WorkDoneProgressBegin",
    "report": "WorkDoneProgressReport",
    "end": "WorkDoneProgressEnd",
}


class Conformance:
    """One session. ``sent`` is the client's side, ``received`` the server's."""

    def __init__(self) -> None:
        self._asked: dict[Any, list[tuple[str, Any]]] = {}
        self._announced: dict[str, Any] = {}
        self._tokens: set[Any] = set()
        self._showing: set[Any] = set()

    def sent(self, message: Any) -> None:
        """Notes a message of the client's, which may be anything at all."""
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            return
        method, params = message["method"], message.get("params")
        if isinstance(message.get("id"), int | str):
            self._asked.setdefault(message["id"], []).append((method, params))
        if method == "initialize" and isinstance(params, dict):
            self._announced = params.get("capabilities") or {}
        self._tokens.update(_tokens_in(params))

    def received(self, message: dict[str, Any]) -> None:
        """Holds a message of the server's against the specification."""
        found = self._of_answer(message) if "method" not in message else self._of_call(message)
        FOUND.extend(found)
        if message.get("jsonrpc") != "2.0":
            FOUND.append(f"{message}: no jsonrpc")

    # --- answers -----------------------------------------------------------------------------

    def _of_answer(self, message: dict[str, Any]) -> Iterator[str]:
        if "id" not in message or ("result" in message) == ("error" in message):
            yield f"{message}: an answer has an id, and either a result or an error"
        elif "error" in message:
            # The meta-model has no name for it.
            error = message["error"]
            if type(error.get("code")) is not int or not isinstance(error.get("message"), str):
                yield f"{message}: an error has a code and a message"
            yield from (f"error: {name} is unknown" for name in error.keys() - _ERROR)
        else:
            asked = self._asked.get(message["id"], [])
            found = [list(self._of_result(*each, message["result"])) for each in asked]
            if not found:
                yield f"{message}: an answer to nothing"
            elif all(found):
                yield from found[-1]

    def _of_result(self, method: str, params: Any, result: Any) -> Iterator[str]:
        known = message_of(method)
        if known is None:
            return
        wrong = list(faults(known.get("result"), result, method))
        yield from wrong
        if wrong:
            return
        if method == "initialize":
            yield from self._of_abilities(result["capabilities"])
        elif method == "textDocument/codeAction":
            for action in result or ():
                yield from self._of_action(action)
        elif method == "codeAction/resolve":
            yield from self._of_edit(result.get("edit"))
        elif method == "workspace/executeCommand" and isinstance(result, dict):
            edit = result.get("edit")
            if edit is not None:
                yield from faults(reference("WorkspaceEdit"), edit, method)
                yield from self._of_edit(edit)

    def _of_abilities(self, capabilities: dict[str, Any]) -> Iterator[str]:
        encodings = self._has("general.positionEncodings") or ["utf-16"]
        if capabilities.get("positionEncoding", "utf-16") not in [*encodings, "utf-16"]:
            yield f"positionEncoding: the client takes {encodings}"
        literals = self._has("textDocument.codeAction.codeActionLiteralSupport")
        if isinstance(capabilities.get("codeActionProvider"), dict) and not literals:
            yield "codeActionProvider: options without codeActionLiteralSupport"

    def _of_action(self, action: dict[str, Any]) -> Iterator[str]:
        of = "textDocument.codeAction"
        if isinstance(action.get("command"), str):
            return  # a bare command
        if not self._has(f"{of}.codeActionLiteralSupport"):
            yield "a code action, where only commands are understood"
        for field, ability in (
            ("disabled", "disabledSupport"),
            ("isPreferred", "isPreferredSupport"),
            ("data", "dataSupport"),
        ):
            if field in action and not self._has(f"{of}.{ability}"):
                yield f"a code action's {field} without {ability}"
        yield from self._of_edit(action.get("edit"))

    def _of_edit(self, edit: dict[str, Any] | None) -> Iterator[str]:
        of, edit = "workspace.workspaceEdit", edit or {}
        if "documentChanges" in edit and not self._has(f"{of}.documentChanges"):
            yield "documentChanges, which the client does not take"
        if "changeAnnotations" in edit and not self._has(f"{of}.changeAnnotationSupport"):
            yield "changeAnnotations, which the client does not take"
        for change in edit.get("documentChanges") or ():
            kind = change.get("kind")
            if kind and kind not in (self._has(f"{of}.resourceOperations") or ()):
                yield f"an edit that would {kind} a file, which the client does not do"

    # --- requests and notifications ----------------------------------------------------------

    def _of_call(self, message: dict[str, Any]) -> Iterator[str]:
        method, params = message["method"], message.get("params")
        known = message_of(method)
        if known is None:
            if not method.startswith("fimble/") or not isinstance(params, dict):
                yield f"{method}: unknown"
            return
        if known["messageDirection"] == "clientToServer":
            yield f"{method}: not the server's to send"
        if ("id" in message) != ("result" in known):
            yield f"{method}: a request has an id, a notification has none"
        ability = known.get("clientCapability")
        if ability and method not in _ALWAYS and not self._has(ability):
            yield f"{method}: the client did not announce {ability}"
        wrong = list(faults(known.get("params"), params, method))
        yield from wrong
        if not wrong:
            yield from self._of_params(method, params)

    def _of_params(self, method: str, params: Any) -> Iterator[str]:
        if method == "client/registerCapability":
            for registration in params["registrations"]:
                yield from self._of_registration(registration)
        elif method == "workspace/applyEdit":
            yield from self._of_edit(params["edit"])
        elif method == "window/workDoneProgress/create":
            self._tokens.add(params["token"])
        elif method == "$/progress":
            yield from self._of_progress(params["token"], params["value"])

    def _of_registration(self, registration: dict[str, Any]) -> Iterator[str]:
        method = registration["method"]
        known = message_of(method)
        if known is None:
            yield f"registered {method}, which is unknown"
            return
        ability = f"{known.get('clientCapability')}.dynamicRegistration"
        if not self._has(ability):
            yield f"registered {method} without {ability}"
        yield from faults(
            known.get("registrationOptions"), registration.get("registerOptions"), method
        )

    def _of_progress(self, token: Any, value: Any) -> Iterator[str]:
        if token not in self._tokens:
            yield f"progress with the token {token!r}, which nobody gave"
        kind = value.get("kind") if isinstance(value, dict) else None
        if kind not in _PROGRESS:
            return  # a part of a result
        yield from faults(reference(_PROGRESS[kind]), value, "$/progress")
        if (kind == "begin") == (token in self._showing):
            yield f"progress {kind} at the wrong time"
        (self._showing.discard if kind == "end" else self._showing.add)(token)

    def _has(self, path: str) -> Any:
        """What the client announced there; False where it said nothing, or that it cannot."""
        value: Any = self._announced
        for name in path.split("."):
            value = value.get(name, False) if isinstance(value, dict) else False
        # An empty object is an announcement, too.
        return True if value == {} else value


def _tokens_in(value: Any) -> Iterator[Any]:
    """Every progress token that a client gives along."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            for name in ("workDoneToken", "partialResultToken"):
                if isinstance(each.get(name), str | int):
                    yield each[name]
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
