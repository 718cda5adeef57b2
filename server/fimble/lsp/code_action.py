"""``textDocument/codeAction``: offered at once by syntax alone, made on resolve or by a command.

An action's ``data``, and the argument of the command ``fimble.edit``, are ``{task?, uri, range,
version?, instruction?, diagnostics?, workDoneToken?}``: all that is needed, so that nothing is
remembered here. The command also takes ``[uri, range, instruction]``; it has the editor apply
the edit where that can be asked for, and answers ``{applied, edit, about, notes}``. An
instruction is asked for by the editor itself: one that can says so with the experimental
capability ``fimble.promptForInstruction``, and gets an action with the command
``fimble.promptEdit`` of its own, with ``{uri, range}``. So it is with changes: an editor with the
capability ``fimble.previewEdits``, which shows them itself and makes what was accepted, gets
actions with the command ``fimble.previewEdit`` of its own, with the ``data`` to be resolved, as
long as changes are to be confirmed (``edit.confirm``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams

from fimble.assist.edit.place import document_problem, place_of
from fimble.assist.edit.problems import Problem
from fimble.assist.edit.service import EditRequest
from fimble.assist.edit.tasks import CUSTOM, TASKS, EditTask
from fimble.errors import EditRefused
from fimble.lsp.abilities import is_experimental
from fimble.lsp.chat_params import command_token, failure, range_from_json
from fimble.lsp.convert import span_of
from fimble.lsp.edits import EditHost
from fimble.lsp.plain import plain
from fimble.lsp.text_sync import OpenDocuments
from fimble_context.assembly import Diagnostic
from fimble_context.syntax import Document
from fimble_context.workspace import Policy

__all__ = ["EDIT_COMMAND", "OPTIONS", "CodeActions"]

logger = logging.getLogger(__name__)

EDIT_COMMAND = "fimble.edit"
_PROMPT_COMMAND = "fimble.promptEdit"
_PREVIEW_COMMAND = "fimble.previewEdit"
_EXPLAIN_COMMAND = "fimble.explain"
_EXPLAIN_KIND = "source.explain"
_KINDS = {
    "fix": "quickfix",
    "tests": "source.tests",
    **{name: f"refactor.rewrite.{name}" for name in TASKS if name not in ("fix", "tests")},
}
OPTIONS = types.CodeActionOptions(
    code_action_kinds=[
        types.CodeActionKind.QuickFix,
        types.CodeActionKind.RefactorRewrite,
        *(kind for kind in (*_KINDS.values(), _EXPLAIN_KIND) if kind != "quickfix"),
    ],
    resolve_provider=True,
)
_LONGEST_MESSAGE = 60
_MOST_FIXES = 10
#: The longest wait for an editor that may not know what it is asked.
_RETICENT_SECONDS = 10.0


class CodeActions:
    """The code actions of one session; ``initialize`` takes what the editor can do."""

    def __init__(
        self,
        documents: OpenDocuments,
        edits: EditHost,
        policy: Callable[[], Policy],
        apply_edit: Callable[
            [types.ApplyWorkspaceEditParams], Coroutine[Any, Any, types.ApplyWorkspaceEditResult]
        ],
        tell: Callable[[str], None],
    ) -> None:
        self._documents = documents
        self._edits = edits
        self._policy = policy
        self._apply_edit = apply_edit
        self._tell = tell
        self._resolves = self._disables = self._literals = False
        self._prompts = self._previews = False
        #: Has a menu of actions, and a way to make their changes that it does not speak of; shows
        #: no error of a command either. Kate 22.12 is so.
        self._reticent = False

    def initialize(self, capabilities: types.ClientCapabilities) -> None:
        """What the editor says of itself."""
        text_document = capabilities.text_document
        action = text_document.code_action if text_document else None
        resolve = action.resolve_support if action else None
        self._literals = bool(action and action.code_action_literal_support)
        self._disables = bool(action and action.disabled_support)
        self._resolves = bool(
            action and action.data_support and resolve and "edit" in resolve.properties
        )
        self._prompts = is_experimental(capabilities, "promptForInstruction")
        self._previews = is_experimental(capabilities, "previewEdits")
        applies = self._edits.abilities.applies
        self._reticent = self._literals and not (self._resolves or applies)

    # --- offering ----------------------------------------------------------------------------

    def offered(self, params: types.CodeActionParams) -> list[types.CodeAction | types.Command]:
        """``textDocument/codeAction``. Asks no model."""
        uri = params.text_document.uri
        document = self._documents.get(uri)
        if document is None:
            return []
        context = params.context
        start, end = span_of(document, params.range, self._documents.encoding)
        by_itself = context.trigger_kind == types.CodeActionTriggerKind.Automatic
        only = [str(getattr(kind, "value", kind)) for kind in context.only or ()]
        problem = document_problem(document, self._policy())
        found = []
        for action in self._actions(uri, document, params, start, end, problem):
            kind = str(getattr(action.kind, "value", action.kind))
            if only and not any(_is_within(kind, wanted) for wanted in only):
                continue
            if by_itself and not only and start == end and kind != "quickfix":
                continue  # a light at every move of the cursor helps nobody
            if action.disabled is not None and (by_itself or not self._disables):
                continue
            found.append(action)
        if self._literals:
            return list(found)
        return [each.command for each in found if each.command is not None]

    def _actions(
        self,
        uri: str,
        document: Document,
        params: types.CodeActionParams,
        start: int,
        end: int,
        problem: Problem | None,
    ) -> Iterator[types.CodeAction]:
        data = {"uri": uri, "range": _range_json(params.range), "version": document.version}
        yield from self._fixes(data, params.context.diagnostics, problem)
        for task in TASKS.values():
            if task.name in (CUSTOM, "fix"):
                continue
            yield self._action(task, document, start, end, data, problem)
        if self._prompts and problem is None:
            command = types.Command(
                "Edit with an instruction …",
                _PROMPT_COMMAND,
                arguments=[{"uri": uri, "range": data["range"]}],
            )
            yield types.CodeAction(command.title, _kind(CUSTOM), command=command)
        yield self._explain(data, problem)

    def _fixes(
        self,
        data: dict[str, Any],
        diagnostics: Sequence[types.Diagnostic],
        problem: Problem | None,
    ) -> Iterator[types.CodeAction]:
        groups = [[each] for each in diagnostics[:_MOST_FIXES]]
        if len(diagnostics) > 1:
            groups.append(list(diagnostics))
        for group in groups:
            if len(group) == 1:
                message = " ".join(_message(group[0]).split())
                short = message[:_LONGEST_MESSAGE]
                title = f"Fix: {short}{'…' if len(message) > len(short) else ''}"
                span = group[0].range
            else:
                title = f"Fix all {len(group)} problems"
                span = types.Range(
                    min((each.range.start for each in group), key=_place),
                    max((each.range.end for each in group), key=_place),
                )
            own = data | {
                "task": "fix",
                "range": _range_json(span),
                "diagnostics": [
                    {
                        "range": _range_json(each.range),
                        "message": _message(each),
                        "source": each.source or "",
                    }
                    for each in group
                ],
            }
            action = types.CodeAction(title, _kind("fix"), diagnostics=group)
            action.is_preferred = len(diagnostics) == 1
            yield self._ready(action, own, problem)

    def _action(
        self,
        task: EditTask,
        document: Document,
        start: int,
        end: int,
        data: dict[str, Any],
        problem: Problem | None,
    ) -> types.CodeAction:
        # The policy has been asked for the whole document.
        place = problem or place_of(document, start, end, task, None)
        if isinstance(place, Problem):
            title = task.title.format("this code")
            return self._ready(types.CodeAction(title, _kind(task.name)), data, place)
        action = types.CodeAction(task.title.format(place.name), _kind(task.name))
        if task.name == "tests" and not document.path:
            unsaved = Problem("unsaved", "The document has no file yet.")
            return self._ready(action, data, unsaved)
        return self._ready(action, data | {"task": task.name}, None)

    def _explain(self, data: dict[str, Any], problem: Problem | None) -> types.CodeAction:
        title = "Explain this code"
        action = types.CodeAction(title, _EXPLAIN_KIND)
        if problem is None and not self._edits.abilities.shows:
            problem = Problem("no-document", "This editor cannot be asked to show a document.")
        if problem is not None:
            action.disabled = types.CodeActionDisabled(problem.reason)
        else:
            arguments = [{"uri": data["uri"], "range": data["range"]}]
            action.command = types.Command(title, _EXPLAIN_COMMAND, arguments=arguments)
        return action

    def _ready(
        self, action: types.CodeAction, data: dict[str, Any], problem: Problem | None
    ) -> types.CodeAction:
        if problem is not None:
            action.disabled = types.CodeActionDisabled(problem.reason)
        elif self._previews and self._edits.confirms:
            action.command = types.Command(action.title, _PREVIEW_COMMAND, arguments=[data])
        elif self._resolves:
            action.data = data
        else:
            action.command = types.Command(action.title, EDIT_COMMAND, arguments=[data])
        return action

    # --- making ------------------------------------------------------------------------------

    async def resolve(self, action: types.CodeAction) -> types.CodeAction:
        """``codeAction/resolve``: the action with its edit. Raises JsonRpcException."""
        given = plain(action.data)
        if action.edit is not None or action.command is not None or given is None:
            return action
        if not isinstance(given, dict):
            raise JsonRpcInvalidParams("An action's data is an object.")
        action.edit, _ = await self._made(given, action.title, None)
        return action

    async def run(self, *arguments: Any) -> dict[str, Any]:
        """The command ``fimble.edit``. Raises JsonRpcException."""
        listed = [plain(argument) for argument in arguments]
        if len(listed) == 1 and isinstance(listed[0], dict):
            given = listed[0]
        elif len(listed) == 3:
            given = dict(zip(("uri", "range", "instruction"), listed, strict=True))
        else:
            raise JsonRpcInvalidParams("fimble.edit takes one object, or [uri, range, text].")
        task = TASKS.get(given.get("task") or CUSTOM)
        token = command_token(given)
        title = task.help.capitalize() if task else "Edit"
        try:
            edit, outcome = await self._made(given, title, token)
        except JsonRpcException as error:
            if self._reticent:
                self._tell(error.message)
            raise
        return {
            "applied": await self._applied(edit, outcome.about),
            "edit": edit,
            "about": outcome.about,
            "notes": list(outcome.notes),
        }

    async def _applied(self, edit: types.WorkspaceEdit, label: str) -> bool:
        """Whether the editor has made the change."""
        if not (self._edits.abilities.applies or self._reticent):
            return False
        asked = self._apply_edit(types.ApplyWorkspaceEditParams(edit, label=label))
        limit = _RETICENT_SECONDS if self._reticent else None
        try:
            return (await asyncio.wait_for(asked, limit)).applied
        except (JsonRpcException, asyncio.TimeoutError):
            logger.warning("the editor did not say whether it applied an edit")
            return False

    async def _made(self, given: dict[str, Any], title: str, token: str | int | None) -> Any:
        uri = given.get("uri")
        if not isinstance(uri, str):
            raise JsonRpcInvalidParams("uri must be a string.")
        for name in ("task", "instruction"):
            if not isinstance(given.get(name) or "", str):
                raise JsonRpcInvalidParams(f"{name} must be a string.")
        span = range_from_json(given.get("range"), "range")
        document = self._documents.get(uri)
        if document is None:
            raise failure(
                EditRefused("The document is not open.", next_step="Open it.", name="closed")
            )
        version = given.get("version")
        if version is not None and version != document.version:
            raise failure(
                EditRefused(
                    "The document was edited since the action was offered.",
                    next_step="Ask again.",
                    name="moved",
                )
            )
        start, end = span_of(document, span, self._documents.encoding)
        request = EditRequest(
            document,
            start,
            end,
            given.get("task") or CUSTOM,
            given.get("instruction") or "",
            self._diagnostics(given.get("diagnostics"), document),
            uri,
        )
        return await self._edits.make(uri, request, title, token)

    def _diagnostics(self, listed: Any, document: Document) -> tuple[Diagnostic, ...]:
        if not isinstance(listed or [], list):
            raise JsonRpcInvalidParams("diagnostics must be a list.")
        found = []
        for each in listed or ():
            if not isinstance(each, dict) or not isinstance(each.get("message"), str):
                raise JsonRpcInvalidParams("Each diagnostic has a range and a message.")
            span = range_from_json(each.get("range"), "a diagnostic's range")
            start, end = span_of(document, span, self._documents.encoding)
            found.append(Diagnostic(start, end, each["message"], str(each.get("source") or "")))
        return tuple(found)


def _kind(task: str) -> str:
    return _KINDS[task]


def _is_within(kind: str, wanted: str) -> bool:
    """Kinds are a hierarchy by dots; the empty one is all of them."""
    return not wanted or kind == wanted or kind.startswith(f"{wanted}.")


def _message(diagnostic: types.Diagnostic) -> str:
    message = diagnostic.message
    return message if isinstance(message, str) else message.value


def _place(position: types.Position) -> tuple[int, int]:
    return position.line, position.character


def _range_json(span: types.Range) -> dict[str, dict[str, int]]:
    return {
        end: {"line": place.line, "character": place.character}
        for end, place in (("start", span.start), ("end", span.end))
    }
