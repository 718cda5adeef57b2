"""The choice of the next token."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fimble.engine.sampling import Sampler, Sampling
from fimble.errors import GenerationFailed

LOGITS = np.array([0.0, 3.0, 2.0, 1.0, -4.0], dtype=np.float32)


def drawn(settings: Sampling, times: int = 400) -> Counter[int]:
    sampler = Sampler(settings)
    return Counter(sampler.choose(LOGITS, 5)[0] for _ in range(times))


def test_temperature_zero_takes_the_most_likely() -> None:
    token, logprob = Sampler(Sampling()).choose(LOGITS, 5)
    assert token == 1
    assert logprob == pytest.approx(np.log(np.exp(3) / np.exp(LOGITS).sum()), abs=1e-5)


def test_padding_of_the_matrix_is_never_chosen() -> None:
    logits = np.array([0.0, 1.0, 99.0], dtype=np.float32)
    assert Sampler(Sampling()).choose(logits, 2)[0] == 1
    assert set(drawn(Sampling(temperature=5.0, seed=1))) == {0, 1, 2, 3, 4}


def test_top_k_and_top_p_bound_the_choice() -> None:
    assert set(drawn(Sampling(temperature=5.0, top_k=2, seed=1))) == {1, 2}
    assert set(drawn(Sampling(temperature=1.0, top_p=0.5, seed=1))) == {1}
    assert set(drawn(Sampling(temperature=1.0, top_p=0.7, seed=1))) == {1, 2}
    assert set(drawn(Sampling(temperature=1.0, top_p=0.0, seed=1))) == {1}
    assert set(drawn(Sampling(temperature=1.0, top_k=99, seed=1))) >= {1, 2, 3}


def test_frequencies_follow_the_probabilities() -> None:
    counts = drawn(Sampling(temperature=1.0, seed=7), 20_000)
    expected = np.exp(LOGITS) / np.exp(LOGITS).sum()
    for token in range(4):
        assert counts[token] / 20_000 == pytest.approx(expected[token], abs=0.015)


def test_a_seed_repeats_and_candidates_differ() -> None:
    settings = Sampling(temperature=2.0, seed=3)

    def choices(candidate: int) -> list[int]:
        sampler = Sampler(settings, candidate)
        return [sampler.choose(LOGITS, 5)[0] for _ in range(30)]

    assert choices(0) == choices(0)
    assert choices(0) != choices(1)


@pytest.mark.parametrize("place", [0, 1, 4])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_is_an_error_with_a_next_step(place: int, value: float) -> None:
    logits = LOGITS.copy()
    logits[place] = value
    with pytest.raises(GenerationFailed, match="NaN") as caught:
        Sampler(Sampling()).choose(logits, 5)
    assert "another package" in caught.value.next_step


def test_what_was_said_before_is_less_likely() -> None:
    sampler = Sampler(Sampling(repetition_penalty=2.0), prompt=[4])
    # 3.0 halved is less than 2.0, and 2.0 halved is no more than 1.0.
    assert [sampler.choose(LOGITS, 5)[0] for _ in range(4)] == [1, 2, 1, 1]
    # What is negative moves away from 0, and the log-probability stays the model's own.
    negative = np.array([-1.0, -1.5], dtype=np.float32)
    token, logprob = Sampler(Sampling(repetition_penalty=2.0), prompt=[0]).choose(negative, 2)
    assert token == 1 and logprob == pytest.approx(-0.9741, abs=1e-4)


def test_repetition_is_punished_among_what_is_allowed_too() -> None:
    sampler = Sampler(Sampling(repetition_penalty=4.0), prompt=[1, 99])
    assert sampler.choose(LOGITS, 5, np.array([1, 3], dtype=np.int32))[0] == 3


@given(
    st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=40),
    st.floats(0, 3),
    st.floats(0, 1),
    st.integers(0, 50),
    st.integers(0, 5),
    st.floats(0.5, 2.0),
)
@settings(deadline=None)
def test_any_settings_choose_a_token_that_exists(
    values: list[float], temperature: float, top_p: float, top_k: int, seed: int, penalty: float
) -> None:
    sampler = Sampler(Sampling(temperature, top_p, top_k, seed, penalty), prompt=[0, 3])
    token, logprob = sampler.choose(np.array(values, dtype=np.float32), len(values))
    assert 0 <= token < len(values)
    assert logprob <= 1e-5
