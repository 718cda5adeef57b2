"""Which model does what: one for completion, one for chat and edits, or the same for both.

Either may be a server elsewhere, if the user's own command (``fimble engine use``) said so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fimble.engine.remote.choice import EngineChoice
from fimble.engine.remote.endpoint import Endpoint
from fimble.lsp.settings import Settings

__all__ = ["ModelChoice", "Roles", "roles_from"]


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """``model`` is a package's name or path, ``provider`` what computes it; empty leaves it to
    the engine. ``elsewhere`` is the server that is asked in its place; with ``fall_back`` the
    package answers while that one does not.
    """

    model: str = ""
    provider: str = ""
    elsewhere: Endpoint | None = None
    fall_back: bool = False


@dataclass(frozen=True, slots=True)
class Roles:
    """The same choice for both means one model."""

    completion: ModelChoice = ModelChoice()
    chat: ModelChoice = ModelChoice()

    @property
    def same(self) -> bool:
        """Whether one model does both."""
        return self.completion == self.chat

    @property
    def hosts(self) -> list[str]:
        """The other machines that text is sent to."""
        ends = (self.completion.elsewhere, self.chat.elsewhere)
        return sorted({end.host for end in ends if end is not None and end.leaves_machine})


def roles_from(settings: Settings, given: Roles, chosen: EngineChoice) -> Roles:
    """What is ``given`` on the command line takes precedence over what is ``chosen`` for all
    windows, and that over the settings.

    A model for chat has a provider of its own: what is set for the other one need not suit it.
    """
    here = _of_this_machine(settings, given)
    if settings.engine.forbid_remote:
        return here
    completion, chat = here.completion, here.chat
    if not (given.completion.model or given.completion.provider):
        completion = _at(completion, chosen.completion, chosen.fall_back)
    if not (given.chat.model or given.chat.provider):
        chat = _at(chat, chosen.chat, chosen.fall_back)
    return Roles(completion, chat)


def _at(choice: ModelChoice, endpoint: Endpoint | None, fall_back: bool) -> ModelChoice:
    if endpoint is None:
        return choice
    return replace(choice, elsewhere=endpoint, fall_back=fall_back)


def _of_this_machine(settings: Settings, given: Roles) -> Roles:
    completion = ModelChoice(
        given.completion.model or settings.model,
        given.completion.provider or settings.provider,
    )
    model = given.chat.model or settings.chat_model
    if not model:
        return Roles(completion, completion)
    return Roles(completion, ModelChoice(model, given.chat.provider or settings.chat_provider))
