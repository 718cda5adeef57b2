"""One connection to the engine, before and after its client has shown the secret.

Anybody on this machine can connect to a port of loopback. Who has not shown the secret gets a
few seconds and one of a few places, the oldest of which is given up for a newcomer: connections
that only wait, or that send a header without end, never keep out the user's own windows. Knows
nothing of what is asked; ``guard`` says who is known.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["BACKLOG", "KNOWN", "STRANGERS", "EngineConnection"]

#: Connections without the secret at once.
STRANGERS = 64
#: Connections that the system holds until we take them. With them and the strangers there are
#: open files left, of which some systems allow 256.
BACKLOG = 128
#: The key in a scope's ``state`` that says that the request had the secret.
KNOWN = "fimble.known"

#: Seconds for a stranger, from connecting to a request with the secret.
_PATIENCE = 10.0
_numbers = itertools.count()


class EngineConnection(H11Protocol):
    """uvicorn's HTTP/1.1, which bounds headers, with limits of time and number for strangers."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Takes a place among the strangers, the oldest one's where there is none left."""
        super().connection_made(transport)
        self._number = next(_numbers)
        self._known = False
        self._asked_last_time = False
        self._timer = self.loop.call_later(_PATIENCE, self._look)
        strangers = [each for each in self._others() if not each.known]
        if len(strangers) > STRANGERS:
            min(strangers, key=lambda each: each._number).give_up()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client or we have closed it."""
        self._timer.cancel()
        super().connection_lost(exc)

    @property
    def known(self) -> bool:
        """Whether a request on this connection had the secret."""
        if not self._known and self.scope is not None:
            self._known = bool(self.scope["state"].get(KNOWN))
        return self._known

    def give_up(self) -> None:
        """Closes it at once, whatever the client may still read or send."""
        self.transport.abort()

    def _others(self) -> list[Any]:
        """All connections of this engine, this one too."""
        return [each for each in self.connections if isinstance(each, EngineConnection)]

    def _look(self) -> None:
        """Gives up a stranger. The process may have stood still meanwhile, as while a model is
        opened: a request that was read only now is looked at before.
        """
        if self.known:
            return
        waiting = self.cycle is not None and not self.cycle.response_complete
        if waiting and not self._asked_last_time:
            self._asked_last_time = True
            self._timer = self.loop.call_later(_PATIENCE, self._look)
        else:
            self.give_up()
