"""The engine for a purpose, as the user has chosen: this machine's, or a server elsewhere."""

from __future__ import annotations

from collections.abc import Callable

from fimble.engine.base import Engine
from fimble.engine.client import EngineEvent, LocalEngine, ignore_event
from fimble.engine.remote.choice import EngineChoice, Purpose, read_choice
from fimble.engine.remote.client import RemoteEngine
from fimble.engine.remote.endpoint import Endpoint
from fimble.engine.remote.fall_back import FallBackEngine
from fimble.engine.tokens import PackageTokenizer
from fimble.errors import FimbleError
from fimble.models.package_files import TOKENIZER_FILE
from fimble.models.store import Store

__all__ = ["connect", "engine_at"]


def connect(
    purpose: Purpose,
    model: str = "",
    on_event: Callable[[EngineEvent], None] = ignore_event,
    *,
    provider: str = "",
    choice: EngineChoice | None = None,
    remote: bool = True,
) -> Engine:
    """The engine that answers for ``purpose``; nothing is started or asked yet.

    ``model`` is this machine's package (name or path), ``provider`` what computes it; "" leaves
    them to the engine. ``choice`` is the user's, read from where it is kept if not given; without
    ``remote`` it is this machine's engine whatever was chosen. Raises SettingsError for a choice
    that cannot be read.
    """
    if not remote:
        return engine_at(None, model, on_event, provider=provider)
    choice = read_choice() if choice is None else choice
    endpoint = choice.for_purpose(purpose)
    return engine_at(endpoint, model, on_event, provider=provider, fall_back=choice.fall_back)


def engine_at(
    endpoint: Endpoint | None,
    model: str = "",
    on_event: Callable[[EngineEvent], None] = ignore_event,
    *,
    provider: str = "",
    fall_back: bool = False,
) -> Engine:
    """The engine of the server at ``endpoint``, or this machine's for None.

    With ``fall_back`` this machine's engine answers while that server does not.
    """
    local = LocalEngine(model=model, provider=provider, on_event=on_event)
    if endpoint is None:
        return local
    server = RemoteEngine(endpoint, find_tokenizer=lambda: _tokenizer(model), on_event=on_event)
    return FallBackEngine(server, local, on_event) if fall_back else server


def _tokenizer(model: str) -> PackageTokenizer | None:
    """The tokenizer of an installed package, if it is one that fills in the middle."""
    store = Store()
    try:
        package = store.find(model) if model else store.default()
        tokenizer = PackageTokenizer(package.path / TOKENIZER_FILE)
    except FimbleError:
        return None
    return tokenizer if tokenizer.has_fim else None
