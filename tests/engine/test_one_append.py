"""DirectML and AMDGPU append once only: a generator a prompt, and all works as elsewhere.

The whole engine, over HTTP, on a runtime that refuses a second append as theirs do.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from fimble.assist.chat.service import ChatService, Question
from fimble.assist.completion import CompletionService
from fimble.assist.settings import ChatSettings, CompletionSettings
from fimble.assist.templates import Templates
from fimble.engine.client import LocalEngine
from fimble.engine.options import EngineOptions
from fimble.engine.protocol import CompletionChunk, CompletionRequest, Control, Text
from fimble.errors import EditRefused
from tests.assist.places import at_mark
from tests.edit.places import OneFolder, request_for, service_on
from tests.engine.process import RunningEngine, running_engine
from tests.engine.test_busy_engine import post_and_leave_open
from tests.support.one_append import OneAppendEngine, one_append_engine
from tests.support.tiny import make_tiny_package
from tests.support.waiting import until

CODE = "def area(width, height):\n    return width * height\n"
CANCELLED = 'fimble_requests_total{end="cancelled"}'
#: Takes seconds, and never repeats itself.
LONG: dict[str, Any] = {"max_tokens": 8000, "temperature": 1.0, "seed": 1, "top_k": 50}
IDS = [(each * 37 + 11) % 200 for each in range(70)]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With room for an edit's prompt."""
    folder = tmp_path_factory.mktemp("packages") / "tiny"
    return make_tiny_package(folder, context_length=8192)


@pytest.fixture(scope="module")
def usual(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    """The same package where prompts can be continued."""
    with running_engine(tmp_path_factory.mktemp("usual"), package) as engine:
        yield engine


@pytest.fixture(scope="module")
def process(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneAppendEngine]:
    with one_append_engine(tmp_path_factory.mktemp("once"), package) as engine:
        # The first slot's generator was made while loading; from here on each prompt has its own.
        engine.engine.complete([1], max_tokens=1)
        yield engine


@pytest.fixture
def once(process: OneAppendEngine) -> Iterator[OneAppendEngine]:
    """Its journal begins with the test; nothing that it did was refused."""
    process.forget()
    yield process
    assert process.count("refused") == process.count("rewind") == 0
    assert process.count("generator") == len(process.prompts)


def test_the_probe_finds_it_out(
    package: Path, usual: RunningEngine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (info,) = usual.health()["models"]
    assert info["continuation"]
    with one_append_engine(tmp_path_factory.mktemp("probe"), package) as probed:
        (info,) = probed.engine.health()["models"]
        assert not info["continuation"] and info["healing"]
        assert probed.count("refused") >= 1, "the runtime itself was asked"


# --- requests ----------------------------------------------------------------------------


def test_each_prompt_is_one_append_to_a_generator_of_its_own(
    once: OneAppendEngine, usual: RunningEngine
) -> None:
    for length in (20, 40, 40, 70, 30):
        answer = once.engine.complete(IDS[:length], max_tokens=6, document="d")
        usage = answer["usage"]
        assert (usage["reused_tokens"], usage["computed_tokens"]) == (0, length)
        assert answer["choices"][0]["text"] == usual.text(IDS[:length], max_tokens=6)
    assert once.prompts == [20, 40, 40, 70, 30]
    assert once.count("next") == 5 * (6 - 1)


def test_two_candidates_compute_the_prompt_twice(
    once: OneAppendEngine, usual: RunningEngine
) -> None:
    body: dict[str, Any] = {"max_tokens": 6, "n": 2, "temperature": 1.0, "seed": 5}
    ours, theirs = (each.complete(IDS, **body)["choices"] for each in (once.engine, usual))
    assert [each["text"] for each in ours] == [each["text"] for each in theirs]
    # The second one begins with a token that it drew from the first one's prompt.
    assert once.prompts == [70, 71]


def test_a_stream_ends_as_elsewhere(once: OneAppendEngine, usual: RunningEngine) -> None:
    body = {"prompt": CODE, "max_tokens": 12}
    texts = [
        "".join(event["choices"][0]["text"] for event in each.events("/v1/completions", body))
        for each in (once.engine, usual)
    ]
    assert texts[0] == texts[1] != ""
    assert len(once.prompts) == 1


def test_typed_text_is_healed_in_one_append(once: OneAppendEngine, usual: RunningEngine) -> None:
    body: dict[str, Any] = {"max_tokens": 6, "heal": True}
    typed = CODE + "    retu"
    ours = once.engine.complete(typed, **body)
    assert ours["choices"][0]["text"] == usual.text(typed, **body)
    whole = once.engine.http.post("/tokenize", json={"texts": [typed]}).json()["counts"][0]
    assert once.prompts == [ours["usage"]["prompt_tokens"]] == [whole - 2]


def test_two_requests_at_once_both_end_as_if_alone(
    once: OneAppendEngine, usual: RunningEngine
) -> None:
    prompts = [IDS, list(reversed(IDS))]
    with ThreadPoolExecutor() as pool, once.held():
        answers = [
            pool.submit(once.engine.complete, prompt, max_tokens=30, document=str(place))
            for place, prompt in enumerate(prompts)
        ]
        until(lambda: once.engine.health()["waiting"] == 2)
    texts = [answer.result()["choices"][0]["text"] for answer in answers]
    assert texts == [usual.text(prompt, max_tokens=30) for prompt in prompts]
    assert once.prompts == [70, 70]


def test_a_chat_that_loses_its_slot_computes_everything_again(
    package: Path, tmp_path: Path
) -> None:
    """The only case in which a prompt is computed twice."""
    with one_append_engine(tmp_path, package, EngineOptions(slots=1)) as once:
        once.forget()
        body: dict[str, Any] = {**LONG, "max_tokens": 1500, "priority": "chat"}
        with ThreadPoolExecutor() as pool:
            chat = pool.submit(once.engine.complete, IDS, **body)
            until(lambda: once.count("next") > 0)
            completion = once.engine.complete(IDS[:20], max_tokens=3)
            answer = chat.result()
        assert completion["usage"]["completion_tokens"] == 3
        assert answer["usage"]["completion_tokens"] == 1500
        first, second, again = once.prompts
        assert (first, second) == (70, 20) and again > 70
        assert answer["extra"]["recomputed_tokens"] == again
        # One token of each answer is left when it ends, and one begins what was computed again.
        assert once.count("next") == (3 - 1) + (1500 - 1 - 1)
        assert once.count("refused") == 0


# --- what waits behind a prompt that cannot be interrupted ---------------------------------


def test_the_newest_completion_alone_waits_behind_a_prompt(once: OneAppendEngine) -> None:
    def ask(length: int) -> dict[str, Any]:
        return once.engine.complete(IDS[:length], max_tokens=3, document="file:///a.py")

    with ThreadPoolExecutor() as pool:
        with once.held():
            busy = pool.submit(ask, 40)
            until(lambda: once.prompts == [40])
            waiting = [pool.submit(ask, 41)]
            until(lambda: once.engine.health()["waiting"] == 2)
            for length in (42, 43, 44):
                waiting.append(pool.submit(ask, length))
                # The older one is answered although the runtime is still in its call.
                assert waiting[-2].result(timeout=60)["choices"][0]["finish_reason"] == "cancelled"
            assert once.prompts == [40]
        assert busy.result()["choices"][0]["finish_reason"] == "cancelled"
        assert waiting[-1].result()["choices"][0]["finish_reason"] == "length"
    assert once.prompts == [40, 44]
    assert once.count("next") == 3 - 1, "the replaced one decoded nothing"


def test_a_dropped_connection_ends_with_its_prompt(once: OneAppendEngine) -> None:
    cancelled = once.engine.metric(CANCELLED)
    with once.held():
        connection = post_and_leave_open(once.engine, {"prompt": IDS, **LONG})
        until(lambda: once.prompts == [70])
        connection.close()
    until(lambda: once.engine.metric(CANCELLED) == cancelled + 1)
    assert once.count("next") < LONG["max_tokens"] - 1


# --- what an editor asks for -------------------------------------------------------------


class Client(LocalEngine):
    """Remembers what was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[CompletionRequest] = []

    async def complete(self, request: CompletionRequest) -> AsyncGenerator[CompletionChunk, None]:
        self.requests.append(request)
        async with aclosing(super().complete(request)) as chunks:
            async for chunk in chunks:
                yield chunk


@pytest_asyncio.fixture
async def client(once: OneAppendEngine, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    monkeypatch.setenv("FIMBLE_HOME", str(once.engine.home))
    client = Client()
    yield client
    await client.aclose()


async def test_completion_lays_its_prompt_out_plainly(
    client: Client, once: OneAppendEngine
) -> None:
    """Nothing is typed behind the middle, to be healed: there would be nothing to gain."""
    service = CompletionService(client)
    for typed in ("w", "wi", "wid"):
        document, cursor = at_mark(f"{CODE}\n\ndef twice({typed}│):\n    return 2\n")
        await service.complete(document, cursor, CompletionSettings(), name="a")
    assert len(client.requests) == 3
    for request, typed in zip(client.requests, ("w", "wi", "wid"), strict=True):
        assert not request.heal
        assert request.prompt[-1] == Control("fim_middle")
        assert any(isinstance(each, Text) and each.text.endswith(typed) for each in request.prompt)
    assert len(once.prompts) == 3


async def test_each_turn_of_a_chat_computes_it_all(
    client: Client, once: OneAppendEngine, tmp_path: Path
) -> None:
    chat = ChatService(
        lambda: client,
        OneFolder(tmp_path),
        Templates,
        lambda: ChatSettings(max_tokens=20),
    )
    answers = [await chat.ask(Question(message)) for message in ("One?", "Two?", "Three?")]
    assert [answer.turn for answer in answers] == [1, 2, 3]
    assert once.prompts == [answer.usage.prompt_tokens for answer in answers]
    assert once.prompts == sorted(once.prompts)
    assert all(answer.usage.reused_tokens == 0 for answer in answers)


async def test_an_edit_asks_twice_and_says_what_was_wrong(
    client: Client, once: OneAppendEngine, tmp_path: Path
) -> None:
    """What a random model says is no edit; on the way there all of the work is done."""
    with pytest.raises(EditRefused, match="Nothing was changed"):
        await service_on(client, tmp_path).edit(request_for("def f(n):\n    «x = n»\n"))
    assert len(once.prompts) == len(client.requests) >= 1


async def test_a_cancelled_chat_leaves_the_engine_free(
    client: Client, once: OneAppendEngine
) -> None:
    cancelled = once.engine.metric(CANCELLED)
    request = CompletionRequest(IDS, max_tokens=8000, temperature=1.0, seed=1, top_k=50)
    answer = client.complete(request)
    await anext(answer)
    await answer.aclose()
    until(lambda: once.engine.metric(CANCELLED) == cancelled + 1)
    assert once.engine.text(IDS[:10], max_tokens=2) == once.engine.text(IDS[:10], max_tokens=2)
    assert once.prompts == [70, 10, 10]
