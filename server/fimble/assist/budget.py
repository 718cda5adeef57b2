"""How long prompts and answers may be for a model to be quick enough on this machine.

Both follow from the speeds that the engine measured and from the time a user is to wait.
Neither goes below a floor, under which completions are poor, nor above a ceiling, which is
the user's and the model's.
"""

from __future__ import annotations

from dataclasses import dataclass

from fimble.assist.chat_layout import CHAT_LAYOUT_TOKENS
from fimble.assist.layout import LAYOUT_TOKENS
from fimble.assist.settings import CompletionSettings
from fimble.engine.base import ModelInfo

__all__ = ["Budget", "budget_for"]

PROMPT_FLOOR = 512
#: Only the first line of an answer is waited for; a body cut short is of no use to anyone.
ANSWER_FLOOR = 64
#: Where a prompt's beginning is kept, a whole one is computed seldom and mostly in advance:
#: it may take so many times the latency that a keystroke may.
_COLD = 10
#: Where it is not, every request computes its prompt, and needs time to answer too.
_WARM_SHARE = 0.6
#: An answer goes on behind its first line while that is read.
_ANSWER_TIMES = 4
#: Of the longest answer, what a block usually has.
_USUAL_SHARE = 0.5
#: What a user types before a prompt is made anew must fit as well.
TYPED_TOKENS = 320


@dataclass(frozen=True, slots=True)
class Budget:
    """Tokens. ``room`` is what the window can hold besides answer, layout and typed text.

    ``floor`` and ``ceiling`` are the bounds of ``prompt`` that were in force. ``in_time`` says
    that a block is usually made within the latency; where no speed is known, too.
    """

    prompt: int
    answer: int
    room: int
    floor: int
    ceiling: int
    in_time: bool = True


def budget_for(info: ModelInfo, settings: CompletionSettings) -> Budget:
    """The budget for one model. Where no speed is known, the ceiling."""
    seconds = settings.latency_ms / 1000
    made = info.decode_tokens_per_s * seconds
    answer = _bounded(
        made * _ANSWER_TIMES,
        min(ANSWER_FLOOR, settings.max_tokens),
        min(settings.max_tokens, max(1, info.window // 2)),
    )
    grows = (info.continuation and info.healing) or not info.fim
    typed = min(TYPED_TOKENS, info.window // 8) if grows else 0
    layout = LAYOUT_TOKENS if info.fim else CHAT_LAYOUT_TOKENS
    room = max(0, info.window - answer - layout - typed)
    ceiling = min(settings.max_prompt_tokens, room)
    floor = min(PROMPT_FLOOR, ceiling)
    times = _COLD if info.continuation else _WARM_SHARE
    prompt = _bounded(info.prefill_tokens_per_s * seconds * times, floor, ceiling)
    return Budget(
        prompt, answer, room, floor, ceiling, in_time=made <= 0 or made >= answer * _USUAL_SHARE
    )


def _bounded(wanted: float, floor: int, ceiling: int) -> int:
    """``wanted`` within its bounds; the ceiling where nothing is known (0)."""
    if wanted <= 0:
        return ceiling
    return min(ceiling, max(floor, int(wanted)))
