"""What a loaded model can do on its provider: tried once, with a few tokens, never assumed.

Providers differ in what may be appended, rewound and kept side by side. Some throw, others
might answer wrongly; both are "no". Everything above reads the answers, not a provider's
name. Knows nothing of packages and requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from fimble.engine.load_errors import OutOfMemory
from fimble.engine.runtime import Logits, Model, Session
from fimble.errors import GenerationFailed, ModelMisbehaved

__all__ = ["Capabilities", "probe_capabilities", "require_numbers"]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """``append``: a prompt may come in slices, and go on after an answer. ``rewind``: tokens
    can be taken back. ``generators``: several KV caches may live at once. ``choose``: which
    token comes next can be set where nothing can be appended.
    """

    append: bool
    rewind: bool
    generators: bool
    choose: bool

    @property
    def continuation(self) -> bool:
        """Whether a prompt that shares its beginning with an earlier one costs only the rest."""
        return self.append and self.rewind

    def to_json(self) -> dict[str, bool]:
        """As ``/v1/models`` shows them."""
        return asdict(self)


def probe_capabilities(model: Model, vocabulary: int) -> Capabilities:
    """Tries everything on caches of 32 tokens. ``model.continuation`` is as it was afterwards.

    ``vocabulary`` is the number of logits that stand for tokens. Raises ModelMisbehaved for
    NaN, GenerationFailed where not even one prompt can be computed.
    """
    ids = [(each * 37 + 11) % min(vocabulary, 200) for each in range(8)]
    expected = _after(model, ids, vocabulary)
    require_numbers(expected)
    append = _tries(model, lambda: _sliced(model, ids), expected, continuation=True)
    rewind = append and _tries(model, lambda: _rewound(model, ids), expected, continuation=True)
    both = append and rewind
    return Capabilities(
        append,
        rewind,
        generators=_tries(model, lambda: _beside(model, ids), expected, continuation=both),
        choose=_tries(model, lambda: _chosen(model, ids), expected, continuation=False),
    )


def require_numbers(logits: Logits) -> None:
    """Raises ModelMisbehaved for NaN and infinity."""
    if not np.isfinite(logits).all():
        raise ModelMisbehaved(
            "it produces NaN instead of probabilities.",
            next_step="Try another package for this provider, or update its driver.",
        )


def _now(session: Session) -> Logits:
    copy: Logits = session.logits().copy()
    return copy


# Each session is gone when the function returns: where only one may live, the next one needs
# that. All give the logits after the same tokens.


def _after(model: Model, ids: Sequence[int], vocabulary: int) -> Logits:
    session = model.session(32)
    session.append(ids)
    return _now(session)[:vocabulary]


def _sliced(model: Model, ids: Sequence[int]) -> Logits:
    session = model.session(32)
    for start in range(0, len(ids), 3):
        session.append(ids[start : start + 3])
    return _now(session)


def _rewound(model: Model, ids: Sequence[int]) -> Logits:
    session = model.session(32)
    session.append(ids[:6])
    session.append([ids[0], ids[1]])
    session.rewind(5)
    session.append(ids[5:7])
    session.append(ids[7:])
    return _now(session)


def _beside(model: Model, ids: Sequence[int]) -> Logits:
    first = model.session(32)
    first.append(ids[:-1])
    first.logits()
    second = model.session(32)
    second.append(list(reversed(ids)))
    second.logits()
    first.append(ids[-1:])
    return _now(first)


def _chosen(model: Model, ids: Sequence[int]) -> Logits:
    session = model.session(32)
    session.append(ids[:-2])
    for token in ids[-2:]:
        session.logits()
        session.append([token])
    return _now(session)


def _tries(
    model: Model, attempt: Callable[[], Logits], expected: Logits, *, continuation: bool
) -> bool:
    before, model.continuation = model.continuation, continuation
    try:
        found = attempt()
    except OutOfMemory:
        raise  # says nothing of what it can do
    except (GenerationFailed, ValueError):
        return False
    finally:
        model.continuation = before
    return _agree(expected, found[: len(expected)])


def _agree(expected: Logits, found: Logits) -> bool:
    """The same prediction up to what slicing a prefill changes in quantised arithmetic."""
    if not np.isfinite(found).all():
        return False
    spread = float(expected.max() - expected.mean()) or 1.0
    near_top = float(expected.max() - expected[int(found.argmax())]) <= 0.1 * spread
    return near_top and float(np.corrcoef(expected, found)[0, 1]) > 0.98
