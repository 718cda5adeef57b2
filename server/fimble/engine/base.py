"""What the rest of fimble may ask of an engine, whichever it is.

Implementations: ``engine.client`` (HTTP: the user's own engine, or another
OpenAI-compatible server) and the scripted one in the tests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field

from fimble.engine.protocol import CompletionChunk, CompletionRequest

__all__ = ["Engine", "ModelInfo"]


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The model that an engine has loaded.

    ``window`` is the largest prompt plus answer, in tokens. ``fim`` says whether the model
    knows the fill-in-the-middle control tokens; ``continuation`` whether a prompt that
    shares its beginning with an earlier one costs only the rest (probed at load);
    ``healing`` whether ``CompletionRequest.heal`` is obeyed. The speeds, in tokens per
    second, were measured when it was loaded; 0.0 where nobody has. ``notice`` is what the
    user should know of how it was loaded (less memory than wanted, another provider); mostly
    empty. ``capabilities`` is what was probed, by name (``engine.capabilities``). ``remote``
    names the machine that prompts are sent to; empty where they stay on this one. ``goes_on`` is
    whether a chat's last message of the assistant's is taken as its answer's beginning.
    """

    name: str
    window: int
    provider: str
    fim: bool
    continuation: bool
    prefill_tokens_per_s: float = 0.0
    decode_tokens_per_s: float = 0.0
    healing: bool = False
    notice: str = ""
    capabilities: Mapping[str, bool] = field(default_factory=dict)
    remote: str = ""
    goes_on: bool = True


class Engine(ABC):
    """A place that continues prompts. All methods may raise ``EngineError``."""

    @abstractmethod
    async def model_info(self) -> ModelInfo:
        """The model that answers; loads it (and starts the engine) where need be."""

    @abstractmethod
    def complete(self, request: CompletionRequest) -> AsyncGenerator[CompletionChunk, None]:
        """Streams the answer. ``aclose()`` of the generator cancels the work at the engine."""

    @abstractmethod
    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text, taken as text (no control tokens)."""

    @abstractmethod
    async def aclose(self) -> None:
        """Ends connections; work under way is cancelled. The engine itself lives on."""
