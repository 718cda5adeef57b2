"""Asks the editor to tell of files that change outside of it, where it can be asked that."""

from __future__ import annotations

import asyncio
import logging
import uuid

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from fimble.lsp.configuration import PATIENCE_SECONDS

__all__ = ["WatchedFiles"]

logger = logging.getLogger(__name__)


class WatchedFiles:
    """The registration of ``workspace/didChangeWatchedFiles``."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server

    async def register(self) -> None:
        """Registers for all files, unless the editor says that it cannot."""
        workspace = self._server.client_capabilities.workspace
        watching = workspace.did_change_watched_files if workspace else None
        if watching is None or not watching.dynamic_registration:
            return
        registration = types.Registration(
            str(uuid.uuid4()),
            types.WORKSPACE_DID_CHANGE_WATCHED_FILES,
            types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher("**/*")]),
        )
        try:
            await asyncio.wait_for(
                self._server.client_register_capability_async(
                    types.RegistrationParams([registration])
                ),
                PATIENCE_SECONDS,
            )
        except (JsonRpcException, asyncio.TimeoutError):
            logger.warning("the editor does not agree to tell of changed files")
