"""Where settings come from: ``initializationOptions``, then ``workspace/configuration``.

An editor that answers ``workspace/configuration`` is asked for the section ``fimble``;
from others ``workspace/didChangeConfiguration`` brings it. What it says lies over the
initialization options, key by key.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from fimble.lsp.messages import Messages
from fimble.lsp.settings import Settings, settings_of

__all__ = ["SECTION", "Configuration"]

logger = logging.getLogger(__name__)

SECTION = "fimble"

#: How long an answer of the editor is waited for: no model is loaded before it is known which.
PATIENCE_SECONDS = 10.0


class Configuration:
    """The settings of the moment; ``on_change`` gets them whenever they differ."""

    def __init__(
        self,
        server: LanguageServer,
        messages: Messages,
        on_change: Callable[[Settings], None],
    ) -> None:
        self.current = Settings()
        self._server = server
        self._messages = messages
        self._on_change = on_change
        self._options: Any = None
        self._problems: list[str] = []
        self._asked = 0

    def initialize(self, params: types.InitializeParams) -> None:
        """Takes the initialization options."""
        self._options = params.initialization_options
        self._use({})

    async def initialized(self) -> None:
        """Asks for the section, and to be told when it changes, as far as the editor can."""
        workspace = self._server.client_capabilities.workspace
        changes = workspace.did_change_configuration if workspace else None
        if changes is not None and changes.dynamic_registration:
            await self._register()
        await self._ask()

    async def changed(self, params: types.DidChangeConfigurationParams) -> None:
        """``workspace/didChangeConfiguration``."""
        if self._can_ask:
            await self._ask()
            return
        settings = params.settings
        self._use(settings.get(SECTION) if isinstance(settings, Mapping) else None)

    @property
    def _can_ask(self) -> bool:
        workspace = self._server.client_capabilities.workspace
        return bool(workspace and workspace.configuration)

    async def _register(self) -> None:
        registration = types.Registration(
            str(uuid.uuid4()),
            types.WORKSPACE_DID_CHANGE_CONFIGURATION,
            types.DidChangeConfigurationRegistrationOptions(section=SECTION),
        )
        try:
            await asyncio.wait_for(
                self._server.client_register_capability_async(
                    types.RegistrationParams([registration])
                ),
                PATIENCE_SECONDS,
            )
        except (JsonRpcException, asyncio.TimeoutError):
            logger.warning("the editor does not agree to tell of changed settings")

    async def _ask(self) -> None:
        if not self._can_ask:
            return
        self._asked += 1
        this = self._asked
        item = types.ConfigurationItem(section=SECTION)
        try:
            answer = await asyncio.wait_for(
                self._server.workspace_configuration_async(types.ConfigurationParams([item])),
                PATIENCE_SECONDS,
            )
        except (JsonRpcException, asyncio.TimeoutError):
            logger.warning("the editor does not give its settings")
            return
        if this == self._asked:  # else a later answer is on its way
            self._use(answer[0] if answer else None)

    def _use(self, section: Any) -> None:
        settings, problems = settings_of(self._options, section)
        news = [problem for problem in problems if problem not in self._problems]
        self._problems = problems
        if news:
            self._messages.notice("settings: " + " ".join(news))
        if settings != self.current:
            self.current = settings
            logger.info("the settings changed")
            self._on_change(settings)
