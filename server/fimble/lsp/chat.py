"""Chat: ``fimble/chat``, ``fimble/chatComplete``, and a command for each of its tasks.

``fimble/chat`` ``{message, conversation?, attachments?, history?, workDoneToken?,
partialResultToken?}`` streams what the model says as ``$/progress`` ``{token, value: {text}}``
and answers with the whole. Attachments are ``{kind: "selection", uri, range, diagnostics?}``,
``{kind: "file", uri}``, ``{kind: "symbol", name, uri?}``, ``{kind: "diagnostics", uri,
diagnostics}``, ``{kind: "diff", uri?, staged?}``, ``{kind: "openFiles"}`` and
``{kind: "workspace"}``. Cancelling the request, or the progress, ends the work at once.

``fimble/chatComplete`` ``{text, character?}`` gives ``{start, end, items: [{text, detail}]}``;
``character``, ``start`` and ``end`` count UTF-16 code units of the text.

Commands take ``[uri, range]`` or ``[{uri, range?, diagnostics?, message?, workDoneToken?}]``, and
answer with the same result; where the editor can show documents, the text is shown as one, too.
Their progress is shown under the request's token, or one of ours where the editor allows it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import uuid
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.progress import Progress

from fimble import system
from fimble.assist.chat.names import NameCompleter
from fimble.assist.chat.pieces import Attachment, Sources
from fimble.assist.chat.service import ChatAnswer, ChatService, Question
from fimble.assist.chat.still import still
from fimble.assist.chat.tasks import TASKS
from fimble.controls import without_controls
from fimble.errors import EngineError, FimbleError
from fimble.lsp.abilities import EditorAbilities
from fimble.lsp.chat_params import (
    answer_to_json,
    command_token,
    failure,
    object_of,
    question_from_json,
    selection_from_json,
    token_of,
)
from fimble.lsp.engine_host import EngineHost
from fimble.lsp.plain import plain
from fimble.lsp.progress import Display
from fimble.lsp.settings import Settings
from fimble.lsp.text_sync import OpenDocuments
from fimble.lsp.workspace import WorkspaceHost
from fimble_context.assembly import Workspace
from fimble_context.syntax import Document
from fimble_context.workspace import Policy

if TYPE_CHECKING:
    from fimble.assist.templates import Templates

__all__ = ["CHAT_COMMANDS", "Chat", "EditorSources", "answers_dir"]

logger = logging.getLogger(__name__)

#: Commands of ``workspace/executeCommand`` and the slash commands that they stand for.
CHAT_COMMANDS = {
    "fimble.explain": "explain",
    "fimble.fix": "fix",
    "fimble.tests": "tests",
    "fimble.document": "document",
    "fimble.review": "review",
    "fimble.commitMessage": "commit",
}
#: Answers shown as documents are files; so many of the newest are kept.
_MOST_SHOWN = 20


def answers_dir() -> Path:
    """Answers that were shown as documents."""
    return system.home() / "answers"


class EditorSources(Sources):
    """What the editor has open, and the workspace's folders."""

    def __init__(self, documents: OpenDocuments, workspace: WorkspaceHost) -> None:
        self._documents = documents
        self._workspace = workspace

    @property
    def policy(self) -> Policy:
        return self._workspace.policy

    def workspace(self) -> Workspace | None:
        return self._workspace.workspace

    def documents(self) -> Iterable[tuple[str, Document]]:
        return [(document_uri(document), document) for document in self._documents.all()]


def document_uri(document: Document) -> str:
    """A URI of an open document's file; empty for one without a file."""
    return system.uri_from_path(Path(document.path)) if document.path else ""


class Chat:
    """The chats of one session. ``start`` runs work in the background."""

    def __init__(
        self,
        documents: OpenDocuments,
        workspace: WorkspaceHost,
        host: EngineHost,
        settings: Callable[[], Settings],
        progress: Progress,
        abilities: EditorAbilities,
        notify: Callable[[str, Any], None],
        show_document: Callable[[types.ShowDocumentParams], Coroutine[Any, Any, Any]],
        start: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._documents = documents
        self._workspace = workspace
        self._host = host
        self._progress = progress
        self._abilities = abilities
        self._notify = notify
        self._show_document = show_document
        self._start = start
        #: Where texts are from; edits are made from the same.
        self.sources = EditorSources(documents, workspace)
        self._names = NameCompleter(self.sources)
        self._templates: tuple[Policy, Templates] | None = None
        self.service = ChatService(
            lambda: host.chat_engine,
            self.sources,
            self.templates,
            lambda: settings().chat,
            name=f"chat:{uuid.uuid4().hex[:8]}",
        )

    # --- requests ------------------------------------------------------------------------

    async def answer(self, params: Any) -> dict[str, Any]:
        """``fimble/chat``."""
        given = object_of(params)
        question = question_from_json(given, self._documents)
        partial = token_of(given, "partialResultToken")

        def stream(text: str) -> None:
            if partial is not None:
                self._notify("$/progress", types.ProgressParams(partial, {"text": text}))

        token = token_of(given, "workDoneToken")
        display = Display(self._progress, token, "fimble", asks=False)
        answer = await self._ask(question, display, stream)
        return answer_to_json(answer, self._documents)

    async def complete(self, params: Any) -> dict[str, Any]:
        """``fimble/chatComplete``."""
        given = object_of(params)
        text, character = given.get("text"), given.get("character")
        if not isinstance(text, str):
            raise JsonRpcInvalidParams("text must be a string.")
        if character is not None and (not isinstance(character, int) or character < 0):
            raise JsonRpcInvalidParams("character must be a whole number.")
        units = text.encode("utf-16-le", "surrogatepass")
        before = units if character is None else units[: 2 * character]
        cursor = len(before.decode("utf-16-le", "ignore"))
        found = await self._names.complete(text, cursor)
        return {
            "start": _units(text[: found.start]),
            "end": _units(text[: found.end]),
            "items": [{"text": name.text, "detail": name.detail} for name in found.names],
        }

    async def run(self, command: str, *arguments: Any) -> dict[str, Any]:
        """One of ``CHAT_COMMANDS``, in a conversation of its own, which a chat can go on with."""
        task = CHAT_COMMANDS[command]
        given = _command_object([plain(argument) for argument in arguments])
        message = given.get("message") or ""
        if not isinstance(message, str):
            raise JsonRpcInvalidParams("message must be a string.")
        attachments = _about(task, given, self._documents)
        question = Question(
            f"/{task} {message}".rstrip(),
            conversation=f"{task}-{secrets.token_hex(6)}",
            attachments=attachments,
        )
        token = command_token(given)
        title = TASKS[task].help.capitalize()
        display = Display(self._progress, token, title, asks=self._abilities.progress)
        answer = await self._ask(question, display, lambda text: None)
        result = answer_to_json(answer, self._documents)
        if task == "commit" and len(answer.blocks) == 1:
            # Small models put it into a fence whatever they are told.
            result["text"] = answer.blocks[0].text
        result["document"] = await self._shown(task, answer) if self._abilities.shows else None
        return result

    # --- the work ------------------------------------------------------------------------

    async def _ask(
        self,
        question: Question,
        display: Display,
        stream: Callable[[str], None],
    ) -> ChatAnswer:
        """The answer, shown while it is made. Raises JsonRpcException."""
        pieces = length = 0

        def heard(text: str) -> None:
            nonlocal pieces, length
            pieces, length = pieces + 1, length + len(text)
            stream(text)
            if pieces % 8 == 1:
                display.report(f"{length} characters so far")

        work = self.service.ask(question, heard)
        try:
            answer = await display.during(work, "The answer was cancelled.")
        except FimbleError as error:
            raise self._failure(error) from error
        if answer.model:
            self._host.chat_worked(answer.model, answer.provider)
            _log(answer)
        return answer

    def _failure(self, error: FimbleError) -> JsonRpcException:
        if isinstance(error, EngineError):
            self._host.chat_failed(error)
        return failure(error)

    async def show_refused(self, text: str) -> Path | None:
        """Keeps an answer that could not become an edit, and shows it where the editor can; its
        file, or None if it could not be kept.
        """
        path = await _kept("edit", ChatAnswer(text, ""))
        if path is not None and self._abilities.shows:
            self._show(system.uri_from_path(path))
        return path

    async def _shown(self, task: str, answer: ChatAnswer) -> str | None:
        """Puts an answer into a file of ours and asks the editor to show it; the file's URI."""
        path = await _kept(task, answer)
        if path is None:
            return None
        uri = system.uri_from_path(path)
        self._show(uri)
        return uri

    def _show(self, uri: str) -> None:
        async def show() -> None:
            try:
                await self._show_document(types.ShowDocumentParams(uri, take_focus=True))
            except JsonRpcException:
                logger.warning("the editor did not show an answer")

        # Some editors answer only when the user comes back to it.
        self._start(show())

    def templates(self) -> Templates:
        """The prompts' templates for the folders of the moment."""
        # Imported by the first chat: jinja2 takes time that no editor's start should wait for.
        from fimble.assist.templates import find_templates

        policy = self._workspace.policy
        if self._templates is None or self._templates[0] is not policy:
            self._templates = policy, find_templates(policy.folders)
        return self._templates[1]


def _about(task: str, given: dict[str, Any], documents: OpenDocuments) -> tuple[Attachment, ...]:
    """What a command is about: a selection, or the changes around a file."""
    if "uri" not in given:
        return ()
    selection = selection_from_json(given, documents)
    if task == "commit" or (task == "review" and "range" not in given):
        return (Attachment("diff", path=selection.path, staged=task == "commit"),)
    return (selection,)


def _command_object(arguments: list[Any]) -> dict[str, Any]:
    """``[uri, range]`` or ``[object]`` or nothing, as one object."""
    if len(arguments) == 1 and isinstance(arguments[0], dict):
        return arguments[0]
    if len(arguments) > 2 or not all(
        isinstance(each, kind)
        for each, kind in zip(arguments, (str, dict | types.Range), strict=False)
    ):
        raise JsonRpcInvalidParams("The arguments are [uri, range] or one object with them.")
    return dict(zip(("uri", "range"), arguments, strict=False))


async def _kept(task: str, answer: ChatAnswer) -> Path | None:
    """The answer's file; None where it cannot be written, for an answer is worth more than that."""
    try:
        return await asyncio.to_thread(_write_answer, task, answer)
    except (OSError, FimbleError) as error:
        logger.warning("an answer could not be kept: %s", error)
        return None


def _write_answer(task: str, answer: ChatAnswer) -> Path:
    folder = system.make_private_dir(answers_dir())
    path = folder / f"{task}-{secrets.token_hex(4)}.md"
    notes = "".join(
        f"- {f'{item.path}: ' if item.path else ''}{item.reason}\n" for item in answer.left_out
    )
    text = (
        still(without_controls(answer.text)).rstrip()
        + "\n"
        + (f"\nLeft out:\n\n{notes}" if notes else "")
    )
    system.write_private(path, text.encode("utf-8", "replace"))
    files = sorted(folder.glob("*.md"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
    for old in files[_MOST_SHOWN:]:
        old.unlink(missing_ok=True)
    return path


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _log(answer: ChatAnswer) -> None:
    usage, timings = answer.usage, answer.timings
    logger.info(
        "chat: turn %d, prompt %d tokens (%d reused), answer %d tokens, queued %.0f ms, "
        "prefill %.0f ms, decode %.0f ms",
        answer.turn,
        usage.prompt_tokens,
        usage.reused_tokens,
        usage.completion_tokens,
        timings.queued_ms,
        timings.prefill_ms,
        timings.decode_ms,
    )
