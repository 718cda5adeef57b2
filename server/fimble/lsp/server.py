"""The server: pygls with our parts put together. Each feature is in the module of its name."""

from __future__ import annotations

import asyncio
import io
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

from lsprotocol import types
from pygls.exceptions import FeatureRequestError
from pygls.lsp.server import LanguageServer

from fimble import __version__
from fimble.assist.edit.service import EditService
from fimble.engine.remote.choice import EngineChoice, read_choice
from fimble.errors import FimbleError
from fimble.lsp.abilities import EditorAbilities
from fimble.lsp.ahead import Ahead
from fimble.lsp.apply import Apply
from fimble.lsp.chat import CHAT_COMMANDS, Chat
from fimble.lsp.code_action import EDIT_COMMAND, CodeActions
from fimble.lsp.code_action import OPTIONS as OFFERED
from fimble.lsp.commands import Commands, cursor_of
from fimble.lsp.completion import OPTIONS, Completions
from fimble.lsp.configuration import Configuration
from fimble.lsp.convert import encoding_of, offset_of
from fimble.lsp.edits import EditHost
from fimble.lsp.engine_host import Connect, EngineHost
from fimble.lsp.inline_completion import InlineCompletions
from fimble.lsp.lifecycle import process_gone, serve_until
from fimble.lsp.logs import log_file, set_level
from fimble.lsp.messages import Messages
from fimble.lsp.notebook import SYNC
from fimble.lsp.offers import ACCEPTED, PARTIALLY_ACCEPTED, Offers
from fimble.lsp.progress import LoadProgress
from fimble.lsp.protocol import FimbleProtocol
from fimble.lsp.roles import Roles, roles_from
from fimble.lsp.settings import Settings
from fimble.lsp.silence import Silence
from fimble.lsp.statistics import SessionStatistics
from fimble.lsp.status import StatusLine
from fimble.lsp.suggestions import Suggestions
from fimble.lsp.transport import StdoutWriter, messages_from, read_in_thread
from fimble.lsp.watched_files import WatchedFiles
from fimble.lsp.well_formed import strict_converter
from fimble.lsp.workspace import WorkspaceHost

__all__ = ["FimbleServer"]

logger = logging.getLogger(__name__)

#: The longest that messages are waited for which an editor left behind; its pipe ends sooner.
_LAST_MESSAGES_SECONDS = 5.0


class FimbleServer(LanguageServer):
    """One editor window's server. ``connect`` makes the engine for a model.

    ``roles`` is what the command line chose (names or paths); it takes precedence over the
    settings, which may name installed packages only. ``clock`` (monotonic seconds) is what
    statistics are timed by.
    """

    protocol: FimbleProtocol

    def __init__(
        self,
        connect: Connect,
        *,
        roles: Roles | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(
            "fimble",
            __version__,
            protocol_cls=FimbleProtocol,
            converter_factory=strict_converter,
            notebook_document_sync=SYNC,
        )
        self._given = roles or Roles()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()
        self._initialized = False
        self._choice_problem: FimbleError | None = None
        self.documents = self.protocol.documents
        self.status = StatusLine(self.protocol.notify)
        self.messages = Messages(self.window_show_message)
        self.abilities = EditorAbilities()
        self.load_progress = LoadProgress(self.work_done_progress, self.abilities)
        self.watched_files = WatchedFiles(self)
        self.configuration = Configuration(self, self.messages, self._settings_changed)
        self.workspace_host = WorkspaceHost(self.documents)
        self.statistics = SessionStatistics(self.documents, clock)
        self.host = EngineHost(
            connect,
            roles=self._roles(Settings()),
            status=self.status,
            messages=self.messages,
            progress=self.load_progress,
            assemble=self.workspace_host.assemble,
            on_call=self.statistics.counts.called,
        )
        view_of = self.protocol.notebooks.view_of
        self.suggestions = Suggestions(
            self.host,
            self.status,
            settings=lambda: self.configuration.current,
            files=lambda: self.workspace_host.policy,
            view_of=view_of,
        )
        self.silence = Silence(
            self.status,
            self.suggestions,
            enabled=lambda: self.configuration.current.completion.enabled,
        )
        offers = Offers()
        self.inline_completions = InlineCompletions(
            self.documents,
            self.suggestions,
            offers,
            view_of,
            self.statistics,
            notify=self.protocol.notify,
        )
        self.completions = Completions(
            self.documents, self.suggestions, offers, view_of, self.statistics
        )
        self.ahead = Ahead(self.documents, self.suggestions, view_of)
        self.commands = Commands(
            self.documents,
            self.suggestions,
            offers,
            self.ahead,
            view_of,
            self.statistics,
            on_snooze=self.silence.show,
        )
        self.chat = Chat(
            self.documents,
            self.workspace_host,
            self.host,
            settings=lambda: self.configuration.current,
            progress=self.work_done_progress,
            abilities=self.abilities,
            notify=self.protocol.notify,
            show_document=self.window_show_document_async,
            start=self._start,
        )
        edits = EditService(
            lambda: self.host.chat_engine,
            self.chat.sources,
            self.chat.templates,
            lambda: self.configuration.current.edit,
        )
        self.edits = EditHost(
            self.documents,
            self.host,
            edits,
            lambda: self.configuration.current,
            self.work_done_progress,
            self.abilities,
            self.chat.show_refused,
        )
        self.code_actions = CodeActions(
            self.documents,
            self.edits,
            lambda: self.workspace_host.policy,
            self.workspace_apply_edit_async,
            self.messages.notice,
        )
        self.apply = Apply(self.documents, edits.apply, self.edits.changes)
        self.documents.listeners += [
            self.workspace_host,
            self.suggestions,
            self.ahead,
            self.statistics,
            self.edits,
        ]
        self.protocol.on_exit = lambda code: self._ended.set()
        self._register_features()

    async def run(self, stdin: io.RawIOBase, stdout: io.RawIOBase) -> int:
        """Serves until the editor is done with us; the exit code."""
        asyncio.get_running_loop().set_exception_handler(_log_exception)
        self.protocol.set_writer(StdoutWriter(stdout, self._end_soon))
        messages = messages_from(read_in_thread(stdin))
        await serve_until(self._ended, messages, self.protocol.receive)
        self.suggestions.supersede_all()
        for task in self._tasks:
            task.cancel()
        self.workspace_host.close()
        await self.host.aclose()
        await self.statistics.close()
        return self.protocol.exit_code

    def report_server_error(self, error: Exception, source: Any) -> None:
        """An unexpected failure outside of a request: logged, and told once."""
        if source is FeatureRequestError:
            return  # the response says it
        logger.error("a message could not be handled: %s", type(error).__name__, exc_info=error)
        self.messages.warning(f"Something went wrong; {log_file()} says more.")

    def _register_features(self) -> None:
        """Tells pygls who handles what. Nested functions: it sets attributes on each."""

        @self.feature(types.INITIALIZE)
        def initialize(params: types.InitializeParams) -> None:
            self._initialize(params)

        @self.feature(types.INITIALIZED)
        async def initialized(params: types.InitializedParams) -> None:
            await self.configuration.initialized()
            self._initialized = True
            self._apply(self.configuration.current)
            self._start(self.watched_files.register())

        @self.feature(types.SHUTDOWN)
        def shutdown(params: None) -> None:
            self.suggestions.supersede_all()
            # Some editors end us before we have come to an end of our own.
            self._start(self.statistics.close())

        @self.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
        async def configuration(params: types.DidChangeConfigurationParams) -> None:
            await self.configuration.changed(params)

        @self.feature(types.TEXT_DOCUMENT_DID_SAVE)
        def saved(params: types.DidSaveTextDocumentParams) -> None:
            self.workspace_host.saved(params.text_document.uri)

        @self.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
        def files(params: types.DidChangeWatchedFilesParams) -> None:
            self.workspace_host.files_changed(params.changes)

        @self.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
        def folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
            self.workspace_host.folders_changed(params.event)

        # Without options the capability is not announced, and no editor would ask.
        @self.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())
        async def inline_completion(
            params: types.InlineCompletionParams,
        ) -> types.InlineCompletionList:
            return await self.inline_completions.answer(params)

        self._register_commands()
        self._register_chat()
        self._register_edits()

    def _register_completion(self) -> None:
        """For editors that show suggestions in no better way; the last moment is ``initialize``."""

        @self.feature(types.TEXT_DOCUMENT_COMPLETION, OPTIONS)
        async def completion(params: types.CompletionParams) -> types.CompletionList:
            return await self.completions.answer(params)

    def _register_commands(self) -> None:
        """Nested functions here too; pygls looks for ``ls`` to tell arguments apart."""

        @self.command(ACCEPTED)
        def accepted(ls: LanguageServer, *arguments: Any) -> None:
            self.commands.accepted(*arguments)

        @self.command(PARTIALLY_ACCEPTED)
        def partially_accepted(ls: LanguageServer, *arguments: Any) -> None:
            self.commands.partially_accepted(*arguments)

        @self.command("fimble.snooze")
        def snooze(ls: LanguageServer, *arguments: Any) -> None:
            self.commands.snooze(*arguments)

        @self.command("fimble.showPrompt")
        async def show_prompt(ls: LanguageServer, *arguments: Any) -> dict[str, Any]:
            return await self.commands.show_prompt(*arguments)

        @self.feature("fimble/cursor")
        def cursor(params: Any) -> None:
            self._cursor_moved(params)

    def _register_chat(self) -> None:
        """Nested functions here too."""

        @self.feature("fimble/chat")
        async def chat(params: Any) -> dict[str, Any]:
            return await self.chat.answer(params)

        @self.feature("fimble/chatComplete")
        async def chat_complete(params: Any) -> dict[str, Any]:
            return await self.chat.complete(params)

        @self.feature("fimble/apply")
        def apply(params: Any) -> dict[str, Any]:
            return self.apply.answer(params)

        def register(name: str) -> None:
            @self.command(name)
            async def run(ls: LanguageServer, *arguments: Any) -> dict[str, Any]:
                return await self.chat.run(name, *arguments)

        for name in CHAT_COMMANDS:
            register(name)

    def _register_edits(self) -> None:
        """Nested functions here too."""

        @self.feature(types.TEXT_DOCUMENT_CODE_ACTION, OFFERED)
        def code_action(params: types.CodeActionParams) -> list[types.CodeAction | types.Command]:
            return self.code_actions.offered(params)

        @self.feature(types.CODE_ACTION_RESOLVE)
        async def resolve(params: types.CodeAction) -> types.CodeAction:
            return await self.code_actions.resolve(params)

        @self.command(EDIT_COMMAND)
        async def edit(ls: LanguageServer, *arguments: Any) -> dict[str, Any]:
            return await self.code_actions.run(*arguments)

    def _cursor_moved(self, params: Any) -> None:
        """``fimble/cursor``: ``{uri, position}``, from editors that tell where the cursor is."""
        uri, position = cursor_of(params)
        document = self.documents.get(uri)
        if document is not None:
            offset = offset_of(document, position, self.documents.encoding)
            self.workspace_host.visited(uri, offset)
            self.ahead.cursor_moved(uri, offset)

    def _initialize(self, params: types.InitializeParams) -> None:
        self.documents.encoding = encoding_of(self.workspace.position_encoding)
        self.abilities.learn(params.capabilities)
        self.code_actions.initialize(params.capabilities)
        self.inline_completions.initialize(params.capabilities)
        text_document = params.capabilities.text_document
        if text_document is None or text_document.inline_completion is None:
            self._register_completion()
        self.workspace_host.initialize(params)
        self.configuration.initialize(params)
        if params.process_id is not None:
            self._start(self._end_with(params.process_id))

    def _settings_changed(self, settings: Settings) -> None:
        set_level(settings.log.level)
        roles = self._roles(settings)
        if roles != self.host.roles:
            if roles.completion != self.host.roles.completion:
                self.suggestions.supersede_all()
            for engine in self.host.use(roles):
                self._start(engine.aclose())
        if self._initialized:  # before that nothing may be sent, and more is to come
            self._apply(settings)

    def _roles(self, settings: Settings) -> Roles:
        """Which models do what; this machine's where it cannot be read what else was chosen."""
        self._choice_problem = None
        try:
            chosen = read_choice()
        except FimbleError as error:
            self._choice_problem = error
            chosen = EngineChoice()
        return roles_from(settings, self._given, chosen)

    def _apply(self, settings: Settings) -> None:
        if self._choice_problem is not None:
            self.messages.error(self._choice_problem)
        self.status.sent_to(self.host.roles.hosts)
        self.silence.show()
        self.statistics.use(settings.statistics)
        self.workspace_host.use(settings.completion.exclude_patterns)
        if not settings.completion.enabled:
            self.suggestions.supersede_all()
        self.host.use_settings(settings.completion)
        if settings.completion.enabled and not self.host.warmed:
            # In the background: nothing waits for it.
            self._start(self.host.warm())

    def _end_soon(self) -> None:
        """The editor reads no more: what it has sent before it left is still to be taken in."""
        asyncio.get_running_loop().call_later(_LAST_MESSAGES_SECONDS, self._ended.set)

    async def _end_with(self, pid: int) -> None:
        await process_gone(pid)
        self._ended.set()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _log_exception(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """asyncio's own report would quote the exception, and may quote source text with it."""
    error = context.get("exception")
    logger.error("a background task failed: %s", type(error).__name__, exc_info=error)
