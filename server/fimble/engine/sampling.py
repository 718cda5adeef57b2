"""From logits to the next token.

Pure functions of an array and a request's settings; knows nothing of models.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fimble.engine.protocol import Sampling
from fimble.engine.runtime import Logits
from fimble.errors import ModelMisbehaved

__all__ = ["Sampler", "Sampling", "top_logprobs"]

#: A lower temperature chooses the most likely token anyway, if it does not overflow.
_GREEDY_BELOW = 1e-4
#: Logarithm of a weight, relative to the highest, that is not worth a draw.
_NEGLIGIBLE = -20.0


class Sampler:
    """Chooses tokens for one candidate; the same seed makes the same choices.

    ``prompt`` are ids that count as repeated from the beginning.
    """

    def __init__(self, settings: Sampling, candidate: int = 0, prompt: Sequence[int] = ()) -> None:
        self._settings = settings
        self._punishes = settings.repetition_penalty != 1.0
        self._seen = set(prompt) if self._punishes else set[int]()
        seed = settings.seed
        # One stream of numbers a candidate, so that it does not depend on the others.
        self._random = random.Random(None if seed is None else f"{seed}/{candidate}")

    def choose(
        self, logits: Logits, vocabulary: int, allowed: npt.NDArray[np.int32] | None = None
    ) -> tuple[int, float]:
        """The next token of ids 0 to ``vocabulary - 1``, and its log-probability.

        The log-probability is the model's own (temperature 1). With ``allowed`` it is as if
        there were no other ids. Raises ModelMisbehaved when the logits hold NaN.
        """
        # Rows beyond the tokenizer's last id are padding of the matrix.
        logits = logits[:vocabulary]
        weighed = self._weighed(logits) if self._punishes else logits
        if allowed is None:
            token, logprob = self._choose(logits, weighed)
        else:
            place, logprob = self._choose(logits[allowed], weighed[allowed])
            token = int(allowed[place])
        if self._punishes:
            self._seen.add(token)
        return token, logprob

    def _weighed(self, logits: Logits) -> Logits:
        """Logits with those of repeated tokens lowered, as the runtime's own search does it."""
        seen = np.fromiter(self._seen, np.int64, len(self._seen))
        seen = seen[seen < len(logits)]
        penalty = self._settings.repetition_penalty
        weighed: Logits = logits.copy()
        values = weighed[seen]
        weighed[seen] = np.where(values > 0, values / penalty, values * penalty)
        return weighed

    def _choose(self, logits: Logits, weighed: Logits) -> tuple[int, float]:
        """The place of the next token by ``weighed``, its log-probability by ``logits``."""
        best = int(np.argmax(logits))
        # argmax gives the first NaN where there is one, so this looks at all of them.
        highest = float(logits[best])
        if not math.isfinite(highest):
            raise ModelMisbehaved(
                "The model produced NaN instead of probabilities.",
                next_step="This package does not work on this provider and driver; try another "
                "package, or update the driver.",
            )
        if self._punishes:
            best = int(np.argmax(weighed))
        greedy = self._settings.temperature < _GREEDY_BELOW
        token = best if greedy else self._draw(weighed, float(weighed[best]))
        return token, float(logits[token]) - highest - _log_sum(logits, highest)

    def _draw(self, logits: Logits, highest: float) -> int:
        settings = self._settings
        scaled = (logits.astype(np.float64) - highest) / settings.temperature
        # Sorting the whole vocabulary would take as long as the model; what is left out has
        # less than a thousandth of the probability, all together.
        kept = np.flatnonzero(scaled > _NEGLIGIBLE)
        if 0 < settings.top_k < kept.size:
            kept = kept[np.argpartition(scaled[kept], -settings.top_k)[-settings.top_k :]]
            kept.sort()
        # Descending; equals stay in the order of their ids.
        kept = kept[np.argsort(-scaled[kept], kind="stable")]
        cumulative = np.cumsum(np.exp(scaled[kept]))
        total = float(cumulative[-1])
        if settings.top_p < 1.0:
            # The smallest set that reaches top_p, never empty.
            count = int(np.searchsorted(cumulative, settings.top_p * total)) + 1
            total = float(cumulative[min(count, len(cumulative)) - 1])
        place = int(np.searchsorted(cumulative, self._random.random() * total, side="right"))
        return int(kept[min(place, len(kept) - 1)])


def top_logprobs(
    logits: Logits, vocabulary: int, count: int, allowed: npt.NDArray[np.int32] | None = None
) -> list[tuple[int, float]]:
    """The ``count`` most likely ids with their log-probabilities, the most likely first."""
    values = logits[:vocabulary] if allowed is None else logits[allowed]
    count = min(count, len(values))
    if count <= 0:
        return []
    places = np.argpartition(values, -count)[-count:]
    places = places[np.argsort(-values[places], kind="stable")]
    highest = float(values[places[0]])
    total = highest + _log_sum(values, highest)
    ids = places if allowed is None else allowed[places]
    return [(int(i), float(values[p]) - total) for i, p in zip(ids, places, strict=True)]


def _log_sum(logits: Logits, highest: float) -> float:
    return float(np.log(np.exp(logits - highest).sum(dtype=np.float64)))
