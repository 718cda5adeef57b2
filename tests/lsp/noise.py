"""Random messages for ``test_fuzz``: right ones, nearly right ones, and what is none."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

from fimble.lsp.well_formed import takes_no_answer

__all__ = ["INTERNAL", "TEXT", "URI", "step"]

INTERNAL = -32603
URI = "untitled:fuzz"
TEXT = "a😀b\nc\r\n"

position = st.builds(
    lambda line, character: {"line": line, "character": character},
    st.integers(0, 4) | st.sampled_from([10**6, 2**31 - 1]),
    st.integers(0, 6) | st.sampled_from([10**6, 2**31 - 1]),
)
span = st.builds(lambda start, end: {"start": start, "end": end}, position, position)
text = st.text(st.sampled_from("ab µ漢😀\r\n<|>"), max_size=8)
change = st.fixed_dictionaries({"text": text}, optional={"range": span})
#: A version that goes back, stays or leaps.
version = st.integers(-3, 9) | st.just(2**31 - 1)

scalar = (
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats()
    | st.text(st.characters(), max_size=6)
    | st.sampled_from(["file:///a%00b", "file://%ff/", "\ud800", "untitled:fuzz", "1e999"])
)
anything = st.recursive(
    scalar,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["uri", "range", "text", "position", "line", "start", "id", "type_name", "", "x y"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
method = st.sampled_from(
    [
        "textDocument/didOpen",
        "textDocument/didChange",
        "textDocument/didClose",
        "textDocument/didSave",
        "textDocument/inlineCompletion",
        "textDocument/completion",
        "textDocument/codeAction",
        "codeAction/resolve",
        "notebookDocument/didOpen",
        "notebookDocument/didChange",
        "workspace/executeCommand",
        "workspace/didChangeConfiguration",
        "workspace/didChangeWatchedFiles",
        "workspace/didChangeWorkspaceFolders",
        "window/workDoneProgress/cancel",
        "fimble/chat",
        "fimble/chatComplete",
        "fimble/apply",
        "fimble/cursor",
        "$/cancelRequest",
        "$/setTrace",
        "initialize",
        "no/such",
    ]
)
command = st.sampled_from(["fimble.accepted", "fimble.showPrompt", "fimble.edit", "fimble.explain"])
HERE = {"line": 0, "character": 1}
#: Another one than whose text is looked at: the exchange may happen to be right.
OTHER = "untitled:other"
DOCUMENT = {"uri": OTHER}
RANGE = {"start": HERE, "end": HERE}
#: Parameters that are right; one value of them is exchanged.
RIGHT: dict[str, Any] = {
    "textDocument/didOpen": {
        "textDocument": {"uri": OTHER, "version": 1, "languageId": "c", "text": TEXT}
    },
    "textDocument/didChange": {
        "textDocument": {"uri": OTHER, "version": 2},
        "contentChanges": [{"text": "", "range": RANGE}],
    },
    "textDocument/didClose": {"textDocument": DOCUMENT},
    "textDocument/inlineCompletion": {
        "textDocument": DOCUMENT,
        "position": HERE,
        "context": {"triggerKind": 1},
    },
    "textDocument/completion": {"textDocument": DOCUMENT, "position": HERE},
    "textDocument/codeAction": {
        "textDocument": DOCUMENT,
        "range": RANGE,
        "context": {"diagnostics": [{"range": RANGE, "message": "m", "code": 1}]},
    },
    "codeAction/resolve": {"title": "t", "data": {"uri": OTHER, "range": RANGE, "task": "fix"}},
    "workspace/executeCommand": {"command": "fimble.showPrompt", "arguments": [OTHER, HERE]},
    "workspace/didChangeWatchedFiles": {"changes": [{"uri": "file:///a.py", "type": 1}]},
    "workspace/didChangeWorkspaceFolders": {
        "event": {"added": [{"uri": "file:///none", "name": "n"}], "removed": []}
    },
    "fimble/cursor": {"uri": OTHER, "position": HERE},
    "fimble/chat": {
        "message": "m",
        "attachments": [{"kind": "selection", "uri": OTHER, "range": RANGE}],
        "history": [{"question": "q", "answer": "a"}],
    },
    "fimble/chatComplete": {"message": "@f", "uri": OTHER},
    "fimble/apply": {"uri": OTHER, "range": RANGE, "version": 1, "text": "x"},
    "notebookDocument/didOpen": {
        "notebookDocument": {
            "uri": "untitled:n",
            "version": 1,
            "notebookType": "t",
            "cells": [{"kind": 2, "document": "untitled:c"}],
        },
        "cellTextDocuments": [
            {"uri": "untitled:c", "version": 1, "languageId": "python", "text": "x"}
        ],
    },
    "notebookDocument/didChange": {
        "notebookDocument": {"uri": "untitled:n", "version": 2},
        "change": {
            "cells": {
                "structure": {"array": {"start": 0, "deleteCount": 1, "cells": []}},
                "textContent": [
                    {
                        "document": {"uri": "untitled:c", "version": 2},
                        "changes": [{"text": "y"}],
                    }
                ],
            }
        },
    },
}


def paths_in(value: Any) -> list[tuple[Any, ...]]:
    """The way to every value inside a JSON value."""
    if not isinstance(value, dict | list):
        return []
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    return [path for key, each in inner for path in ((key,), *((key, *p) for p in paths_in(each)))]


@st.composite
def nearly_right(draw: st.DrawFn) -> Any:
    """A message with right parameters but for one value."""
    name = draw(st.sampled_from(sorted(RIGHT)))
    params = copy.deepcopy(RIGHT[name])
    *way, last = draw(st.sampled_from(paths_in(params)))
    inner = params
    for key in way:
        inner = inner[key]
    inner[last] = draw(anything)
    notifies = takes_no_answer(name) or name == "fimble/cursor"
    id = {} if notifies else {"id": draw(st.integers(1, 3))}
    return {"jsonrpc": "2.0", "method": name, "params": params, **id}


@st.composite
def broken_change(draw: st.DrawFn) -> Any:
    """A change of the document, which is named rightly, with a value that is of no right type."""
    params = {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [draw(change)]}
    *way, last = draw(
        st.sampled_from([p for p in paths_in(params) if p[-1] not in ("textDocument", "uri")])
    )
    inner: Any = params
    for key in way:
        inner = inner[key]
    inner[last] = draw(st.sampled_from([True, 1.5, [None], {"uri": URI}]))
    return params


noise = st.one_of(
    nearly_right(),
    nearly_right(),
    st.builds(
        lambda method, params: {"jsonrpc": "2.0", "method": method, "params": params},
        method,
        anything,
    ),
    st.builds(
        lambda method, params, id: {"jsonrpc": "2.0", "id": id, "method": method, "params": params},
        method,
        anything,
        st.integers(1, 3) | anything,
    ),
    st.builds(
        lambda command, arguments, id: {
            "jsonrpc": "2.0",
            "id": id,
            "method": "workspace/executeCommand",
            "params": {"command": command, "arguments": arguments},
        },
        command,
        st.lists(anything, max_size=3),
        st.integers(1, 3),
    ),
    st.builds(
        lambda id, answer: {"jsonrpc": "2.0", "id": id, **answer},
        st.integers(1, 3) | anything,
        st.fixed_dictionaries({}, optional={"result": anything, "error": anything}),
    ),
    anything,
)
frame = st.one_of(
    noise.map(lambda value: ("send", value)),
    st.binary(max_size=30).map(lambda body: ("frame", body)),
)
step = st.one_of(
    st.tuples(st.just("change"), version, st.lists(change, min_size=1, max_size=3)),
    broken_change().map(lambda params: ("broken", params)),
    frame,
)
