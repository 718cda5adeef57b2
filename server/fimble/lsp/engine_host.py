"""The engine of this session: warmed, shown in the status line, exchanged for another model.

One model may do all, or one completes and another chats and edits: then there are two
connections to the one engine process, which decides whether both models fit. The status line
is about completion.

Wraps what ``fimble.engine`` provides with what an editor shows of it. The engine process
outlives the session; only the connection ends with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias

from fimble.assist.answer import ModelCall
from fimble.assist.budget import budget_for
from fimble.assist.completion import CompletionService
from fimble.assist.prompt import Assemble, own_text_only
from fimble.assist.settings import CompletionSettings
from fimble.engine.base import Engine, ModelInfo
from fimble.engine.client import EngineEvent
from fimble.errors import EngineEnded, EngineUnavailable, FimbleError
from fimble.lsp.messages import Messages
from fimble.lsp.progress import LoadProgress
from fimble.lsp.roles import ModelChoice, Roles
from fimble.lsp.status import StatusLine

__all__ = ["Connect", "EngineHost"]

logger = logging.getLogger(__name__)

#: Makes the engine for a model.
Connect: TypeAlias = Callable[[ModelChoice, Callable[[EngineEvent], None]], Engine]

#: Editors cancel a request when a key is pressed, and ask again a moment later.
_GRACE_SECONDS = 0.03


class EngineHost:
    """The current engine, the completion service on it, and the engine for chat and edits."""

    def __init__(
        self,
        connect: Connect,
        *,
        roles: Roles,
        status: StatusLine,
        messages: Messages,
        progress: LoadProgress,
        assemble: Assemble = own_text_only,
        on_call: Callable[[ModelCall], None] = lambda call: None,
    ) -> None:
        self._connect = connect
        self.roles = roles
        self._status = status
        self._messages = messages
        self._progress = progress
        self._death_told = False
        self.warmed = False
        #: Whether the engine has answered, and has not failed since.
        self.works = False
        self._assemble = assemble
        self._on_call = on_call
        self._settings = CompletionSettings()
        self._info: ModelInfo | None = None
        self._engine = connect(roles.completion, self._on_event)
        # Made when it is first asked for: many sessions never chat.
        self._chat_engine: Engine | None = None
        self.completions = self._service()

    def _service(self) -> CompletionService:
        return CompletionService(
            self._engine, self._assemble, grace=_GRACE_SECONDS, on_call=self._on_call
        )

    @property
    def engine(self) -> Engine:
        """The engine of the moment for completion."""
        return self._engine

    @property
    def chat_engine(self) -> Engine:
        """The engine of the moment for chat and edits."""
        if self.roles.same:
            return self._engine
        if self._chat_engine is None:
            self._chat_engine = self._connect(self.roles.chat, self._on_chat_event)
        return self._chat_engine

    def use_settings(self, settings: CompletionSettings) -> None:
        """The settings of the moment: the budget that is shown follows from them."""
        self._settings = settings
        if self._info is not None:
            self._status.show_budget(budget_for(self._info, settings))

    async def warm(self) -> None:
        """Starts the engine and loads the model; a failure is shown, not raised."""
        self.warmed = True
        try:
            info = await self._engine.model_info()
        except FimbleError as error:
            self.failed(error)
        else:
            self.works = True
            self._info = info
            budget = budget_for(info, self._settings)
            self._status.ready(info.name, info.provider, budget, _how_it_completes(info))
            self._progress.end()

    def use(self, roles: Roles) -> list[Engine]:
        """Goes over to other models; the engines that are to be closed are returned."""
        former, self.roles = self.roles, roles
        closed = [] if self._chat_engine is None else [self._chat_engine]
        self._chat_engine = None
        if roles.completion != former.completion:
            closed.append(self._engine)
            self.warmed = self.works = False
            self._info = None
            self.completions.end_all()
            self._engine = self._connect(roles.completion, self._on_event)
            self.completions = self._service()
        self._messages.start_over()
        return closed

    def failed(self, error: FimbleError) -> None:
        """Shows a failure of the engine: a message, once, and the status line."""
        self.works = False
        # That the engine died is told already; what it means for a request is no news. Nor is
        # that somebody ended it: what was asked says so, and what keeps the next one from
        # starting is told then.
        told = self._death_told and isinstance(error, EngineUnavailable)
        if not (told or isinstance(error, EngineEnded)):
            self._messages.error(error)
        self._status.engine("error", str(error))
        self._progress.end()

    def chat_failed(self, error: FimbleError) -> None:
        """``failed`` for the engine of chat and edits; completion may work all the same."""
        if self.roles.same:
            self.failed(error)
            return
        if not isinstance(error, EngineEnded):
            self._messages.error(error)
        self._progress.end()

    def chat_worked(self, model: str, provider: str) -> None:
        """``worked`` for the engine of chat and edits."""
        if self.roles.same:
            self.worked(model, provider)

    def worked(self, model: str, provider: str) -> None:
        """The engine answered: what was wrong before is over."""
        self._death_told = False
        self.works = True
        self._messages.recovered()
        how = "" if self._info is None else _how_it_completes(self._info)
        self._status.ready(model, provider, message=how)

    async def aclose(self) -> None:
        """Ends the connection. The engine lives on for other windows."""
        self._progress.end()
        await self._engine.aclose()
        if self._chat_engine is not None:
            await self._chat_engine.aclose()

    def _on_chat_event(self, event: EngineEvent) -> None:
        """What another model is at is no state of completion."""
        if event.kind in ("starting", "loading", "stage"):
            logger.info("engine %s, for chat: %s", event.kind, event.message)
            self._progress.report(event.message)
        else:
            self._on_event(event)

    def _on_event(self, event: EngineEvent) -> None:
        logger.info("engine %s: %s", event.kind, event.message)
        if event.kind in ("starting", "loading"):
            self._status.engine("starting" if event.kind == "starting" else "loading")
            self._progress.report(event.message)
        elif event.kind == "stage":
            self._progress.report(event.message)
        elif event.kind == "notice":
            self._messages.warning(event.message)
        elif event.kind == "died":
            self.works = False
            self._death_told = True
            self._messages.warning(f"{event.message} {event.next_step}".rstrip())
            self._status.engine("error", event.message)
        else:
            # "failed" comes with an error that whoever asked reports; "ready" with an answer.
            self._progress.end()


def _how_it_completes(info: ModelInfo) -> str:
    """For the status line, where it is not as it should be."""
    if info.fim:
        return ""
    if not info.goes_on:
        return f"{info.name} does not fill in the middle: it sees what is before the cursor."
    return f"{info.name} is a chat model: it completes by a fall-back prompt."
