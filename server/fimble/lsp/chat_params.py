"""``fimble/chat``'s parameters and results as JSON, to ``assist.chat``'s terms and back.

Positions are converted here, in the encoding that was negotiated. What cannot be meant is an
error of the protocol, which names the field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams

from fimble import system
from fimble.assist.chat.blocks import CodeBlock
from fimble.assist.chat.pieces import Attachment
from fimble.assist.chat.service import ChatAnswer, Question
from fimble.errors import EditRefused, FimbleError
from fimble.lsp.convert import document_path, range_of, span_of
from fimble.lsp.plain import plain
from fimble.lsp.progress import COMMAND_TOKEN
from fimble.lsp.text_sync import OpenDocuments
from fimble.lsp.well_formed import is_id
from fimble_context.assembly import Diagnostic
from fimble_context.syntax import Document

__all__ = [
    "answer_to_json",
    "command_token",
    "failure",
    "object_of",
    "question_from_json",
    "range_from_json",
    "selection_from_json",
    "token_of",
]

_REQUEST_FAILED = -32803

_MOST_ATTACHMENTS = 64
_MOST_DIAGNOSTICS = 200


def question_from_json(params: Mapping[str, Any], documents: OpenDocuments) -> Question:
    """``{message, conversation?, attachments?, history?}``. Raises JsonRpcInvalidParams."""
    attachments = _list(params, "attachments")
    if len(attachments) > _MOST_ATTACHMENTS:
        raise _unusable(f"attachments takes at most {_MOST_ATTACHMENTS}.")
    return Question(
        message=_string(params, "message"),
        conversation=_string(params, "conversation", "default"),
        attachments=tuple(_attachment(each, documents) for each in attachments),
        history=tuple(_exchange(each) for each in _list(params, "history")),
    )


def object_of(params: Any) -> dict[str, Any]:
    """The parameters of a request of ours."""
    given = plain(params)
    if not isinstance(given, dict):
        raise JsonRpcInvalidParams("The parameters must be an object.")
    return given


def failure(error: FimbleError) -> JsonRpcException:
    """A request that was right and cannot be answered: the message says why and what to do."""
    detail = {"message": error.message, "next_step": error.next_step}
    if isinstance(error, EditRefused):
        detail["name"] = error.name
    return JsonRpcException(str(error), _REQUEST_FAILED, detail)


def token_of(params: Mapping[str, Any], name: str) -> str | int | None:
    """A progress token, or None."""
    token = params.get(name)
    if token is not None and not is_id(token):
        raise _unusable(f"{name} must be a string or an integer.")
    return token


def command_token(params: Mapping[str, Any]) -> str | int | None:
    """The progress token of a command: among its arguments, else beside them in its request."""
    token = token_of(params, "workDoneToken")
    return COMMAND_TOKEN.get() if token is None else token


def selection_from_json(value: Mapping[str, Any], documents: OpenDocuments) -> Attachment:
    """``{uri, range?, diagnostics?}``; without a range it is the whole document."""
    uri = _string(value, "uri")
    document = documents.get(uri)
    path = document_path(uri)
    if document is None:
        name = Path(path).name if path else uri
        return Attachment("selection", source=uri, name=name, path=Path(path) if path else None)
    span = value.get("range")
    start, end = 0, len(document.text)
    if span is not None:
        start, end = span_of(document, range_from_json(span, "range"), documents.encoding)
    return Attachment(
        "selection",
        document=document,
        source=uri,
        start=start,
        end=end,
        path=Path(path) if path else None,
        diagnostics=_diagnostics(value, document, documents),
    )


def answer_to_json(answer: ChatAnswer, documents: OpenDocuments) -> dict[str, Any]:
    """The result of the request: as commands print it, with blocks placed in documents."""
    blocks = [_block(block, documents) for block in answer.blocks]
    return {**answer.to_json(), "blocks": blocks}


def _attachment(value: Any, documents: OpenDocuments) -> Attachment:
    if not isinstance(value, Mapping):
        raise _unusable("Each attachment is an object with a kind.")
    kind = value.get("kind")
    if kind == "selection":
        return selection_from_json(value, documents)
    if kind == "diagnostics":
        return replace(selection_from_json(value, documents), kind="diagnostics")
    if kind == "file":
        path = document_path(_string(value, "uri"))
        if not path:
            return selection_from_json({"uri": value["uri"]}, documents)
        return Attachment("file", path=Path(path))
    if kind == "symbol":
        path = document_path(_string(value, "uri", ""))
        return Attachment("symbol", name=_string(value, "name"), path=Path(path) if path else None)
    if kind == "diff":
        path = document_path(_string(value, "uri", ""))
        staged = value.get("staged") is True
        return Attachment("diff", path=Path(path) if path else None, staged=staged)
    if kind in ("openFiles", "workspace"):
        return Attachment("open files" if kind == "openFiles" else "workspace")
    raise _unusable(
        "An attachment's kind is selection, file, symbol, diagnostics, diff, openFiles or "
        "workspace."
    )


def _diagnostics(
    value: Mapping[str, Any], document: Document, documents: OpenDocuments
) -> tuple[Diagnostic, ...]:
    found = []
    for each in _list(value, "diagnostics")[:_MOST_DIAGNOSTICS]:
        if not isinstance(each, Mapping):
            raise _unusable("Each diagnostic is an object with a range and a message.")
        span = range_from_json(each.get("range"), "a diagnostic's range")
        start, end = span_of(document, span, documents.encoding)
        source = each.get("source")
        message = _string(each, "message")
        found.append(Diagnostic(start, end, message, source if isinstance(source, str) else ""))
    return tuple(found)


def _exchange(value: Any) -> tuple[str, str]:
    if not isinstance(value, Mapping):
        raise _unusable("Each part of the history is an object with question and answer.")
    return _string(value, "question"), _string(value, "answer")


def _block(block: CodeBlock, documents: OpenDocuments) -> dict[str, Any]:
    found: dict[str, Any] = {
        "language": block.language,
        "text": block.text,
        "path": block.path,
        "complete": block.complete,
        "uri": None,
        "range": None,
        "version": None,
    }
    target = block.target
    if target is None:
        return found
    document = documents.get(target.source) if target.source else None
    if target.source or target.file:
        found["uri"] = target.source or system.uri_from_path(Path(target.file))
    # A document that has moved on has something else at that place.
    if document is not None and document.version == target.version:
        span = range_of(document, target.start, target.end, documents.encoding)
        found["range"] = {
            "start": {"line": span.start.line, "character": span.start.character},
            "end": {"line": span.end.line, "character": span.end.character},
        }
        found["version"] = document.version
    return found


def range_from_json(value: Any, name: str) -> types.Range:
    """An LSP range. Raises JsonRpcInvalidParams, with the name of the field."""
    if isinstance(value, types.Range):
        return value
    try:
        places = [
            types.Position(max(0, int(value[end]["line"])), max(0, int(value[end]["character"])))
            for end in ("start", "end")
        ]
    except (TypeError, KeyError, ValueError) as error:
        raise _unusable(f"{name} must be a range of two positions.") from error
    return types.Range(*places)


def _string(value: Mapping[str, Any], name: str, default: str | None = None) -> str:
    found = value.get(name, default)
    if found is None:
        found = default
    if not isinstance(found, str):
        raise _unusable(f"{name} must be a string.")
    return found


def _list(value: Mapping[str, Any], name: str) -> Sequence[Any]:
    found = value.get(name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise _unusable(f"{name} must be a list.")
    return found


def _unusable(message: str) -> JsonRpcInvalidParams:
    return JsonRpcInvalidParams(message)
