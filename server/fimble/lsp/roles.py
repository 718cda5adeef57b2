"""Which model does what: one for completion, one for chat and edits, or the same for both."""

from __future__ import annotations

from dataclasses import dataclass

from fimble.lsp.settings import Settings

__all__ = ["ModelChoice", "Roles", "roles_from"]


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """``model`` is a package's name or path, ``provider`` what computes it; empty leaves it to
    the engine.
    """

    model: str = ""
    provider: str = ""


@dataclass(frozen=True, slots=True)
class Roles:
    """The same choice for both means one model."""

    completion: ModelChoice = ModelChoice()
    chat: ModelChoice = ModelChoice()

    @property
    def same(self) -> bool:
        """Whether one model does both."""
        return self.completion == self.chat


def roles_from(settings: Settings, given: Roles) -> Roles:
    """What is ``given`` on the command line takes precedence over the settings.

    A model for chat has a provider of its own: what is set for the other one need not suit it.
    """
    completion = ModelChoice(
        given.completion.model or settings.model,
        given.completion.provider or settings.provider,
    )
    model = given.chat.model or settings.chat_model
    if not model:
        return Roles(completion, completion)
    return Roles(completion, ModelChoice(model, given.chat.provider or settings.chat_provider))
