"""Requests, answers and models as JSON: ours survive the way, other servers' are understood."""

from __future__ import annotations

from dataclasses import replace

from fimble.engine.answers import Shape
from fimble.engine.base import ModelInfo
from fimble.engine.bodies import parse_chat, parse_completion
from fimble.engine.protocol import (
    ChatMessage,
    CompletionChunk,
    CompletionRequest,
    Control,
    Text,
    Timings,
    TokenLogprob,
    Usage,
)
from fimble.engine.wire import (
    chunks_from_json,
    completion_body,
    model_info_from_json,
    model_info_to_json,
)


def test_a_request_survives_the_way() -> None:
    request = CompletionRequest(
        (Control("fim_middle"), Text("x = ")),
        max_tokens=7,
        temperature=0.5,
        top_p=0.9,
        top_k=3,
        seed=4,
        stop=("\n",),
        n=2,
        priority="warmup",
        document="a.py",
        model="m",
        heal=True,
        logprobs=2,
    )
    assert parse_completion(completion_body(request, stream=True)) == (request, True)
    plain = CompletionRequest("x")
    body = completion_body(plain, stream=False)
    assert parse_completion(body) == (plain, False)
    # What we add is left out where it is not asked for: other servers may refuse it.
    assert not {"heal", "logprobs", "document", "model"} & set(body)


def test_a_chat_survives_the_way() -> None:
    messages = (ChatMessage("system", "Be brief."), ChatMessage("user", "<|im_end|>"))
    request = CompletionRequest(
        "",
        temperature=None,
        top_p=None,
        top_k=None,
        repetition_penalty=None,
        priority="chat",
        messages=messages,
    )
    body = completion_body(request, stream=True)
    assert "prompt" not in body
    assert parse_chat(body) == (list(messages), replace(request, messages=()), True)
    # Sampling that is asked for is no longer the package's.
    chosen = replace(request, temperature=0.0, top_k=5, repetition_penalty=1.0)
    assert parse_chat(completion_body(chosen, stream=True))[1] == replace(chosen, messages=())


def test_a_piece_of_a_chat_survives_the_way() -> None:
    chunk = CompletionChunk("ab", index=1, usage=Usage(5, 3, 2, 4), model="m")
    assert chunks_from_json(Shape("chat").piece(chunk)) == [chunk]


def test_a_piece_survives_the_way() -> None:
    chunk = CompletionChunk(
        "ab",
        index=1,
        usage=Usage(5, 3, 2, 4),
        timings=Timings(1.0, 2.0, 3.0),
        model="m",
        provider="CPU",
        extra={"mean_logprob": -0.5},
        logprobs=(TokenLogprob("ab", -0.5, (("ab", -0.5), ("c", -1.5)), 3),),
    )
    assert chunks_from_json(Shape("completion").piece(chunk)) == [chunk]


def test_a_model_survives_the_way() -> None:
    info = ModelInfo("m", 10, "CPU", True, True, 1.5, 2.5, healing=True)
    assert model_info_from_json(model_info_to_json(info)) == info


def test_other_servers_pieces_are_understood() -> None:
    bare = {"choices": [{"text": "a", "index": 0}]}
    assert chunks_from_json(bare) == [CompletionChunk("a")]
    nulls = {"choices": [{"text": None, "logprobs": None}], "usage": None, "model": "m"}
    assert chunks_from_json(nulls) == [CompletionChunk("", model="m")]
    # llama.cpp's server has timings of its own.
    foreign = {"choices": [{"text": "a"}], "timings": {"prompt_n": 1, "predicted_ms": 2.0}}
    assert chunks_from_json(foreign) == [CompletionChunk("a")]
    assert chunks_from_json({"choices": []}) == []


def test_usage_alone_at_the_end_is_taken() -> None:
    last = {
        "choices": [],
        "usage": {
            "prompt_tokens": 9,
            "completion_tokens": 2,
            "prompt_tokens_details": {"cached_tokens": 6},
        },
    }
    assert chunks_from_json(last) == [CompletionChunk("", usage=Usage(9, 6, 3, 2))]
    last["usage"] = {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": None}
    assert chunks_from_json(last) == [CompletionChunk("", usage=Usage(9, 0, 9, 2))]
