"""The engine of this session: warmed, shown in the status line, exchanged for another model.

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
from fimble.errors import EngineUnavailable, FimbleError
from fimble.lsp.messages import Messages
from fimble.lsp.progress import LoadProgress
from fimble.lsp.status import StatusLine

__all__ = ["Connect", "EngineHost"]

logger = logging.getLogger(__name__)

#: Makes the engine for a model (name or path; "" leaves the choice to the engine).
Connect: TypeAlias = Callable[[str, Callable[[EngineEvent], None]], Engine]

#: Editors cancel a request when a key is pressed, and ask again a moment later.
_GRACE_SECONDS = 0.03


class EngineHost:
    """The current engine and the completion service on it."""

    def __init__(
        self,
        connect: Connect,
        *,
        model: str,
        status: StatusLine,
        messages: Messages,
        progress: LoadProgress,
        assemble: Assemble = own_text_only,
        on_call: Callable[[ModelCall], None] = lambda call: None,
    ) -> None:
        self._connect = connect
        self.model = model
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
        self._engine = connect(model, self._on_event)
        self.completions = self._service()

    def _service(self) -> CompletionService:
        return CompletionService(
            self._engine, self._assemble, grace=_GRACE_SECONDS, on_call=self._on_call
        )

    @property
    def engine(self) -> Engine:
        """The engine of the moment."""
        return self._engine

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
            self._status.ready(info.name, info.provider, budget_for(info, self._settings))
            self._progress.end()

    def use_model(self, model: str) -> Engine:
        """Goes over to another model; the former engine, to be closed, is returned."""
        former, self.model = self._engine, model
        self.warmed = self.works = False
        self._info = None
        self.completions.end_all()
        self._engine = self._connect(model, self._on_event)
        self.completions = self._service()
        self._messages.start_over()
        return former

    def failed(self, error: FimbleError) -> None:
        """Shows a failure of the engine: a message, once, and the status line."""
        self.works = False
        # That the engine died is told already; what it means for a request is no news.
        if not (self._death_told and isinstance(error, EngineUnavailable)):
            self._messages.error(error)
        self._status.engine("error", str(error))
        self._progress.end()

    def worked(self, model: str, provider: str) -> None:
        """The engine answered: what was wrong before is over."""
        self._death_told = False
        self.works = True
        self._messages.recovered()
        self._status.ready(model, provider)

    async def aclose(self) -> None:
        """Ends the connection. The engine lives on for other windows."""
        self._progress.end()
        await self._engine.aclose()

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
