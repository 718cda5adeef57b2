"""AMD's packages in the engine: what this machine can and cannot do with them.

No machine of ours has their providers. So with their own provider they must be refused in
words. On the CPU those whose operators it has must answer as the same weights do in a package
of ours: then layout, names and settings are read right.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from fimble import system
from fimble.assist.chat.service import ChatService, Question
from fimble.assist.completion import CompletionService
from fimble.assist.settings import ChatSettings, CompletionSettings
from fimble.assist.templates import Templates
from fimble.engine.client import LocalEngine
from fimble.engine.options import EngineOptions
from fimble.models.runtimes import find_runtime
from tests.assist.places import at_mark
from tests.edit.places import OneFolder
from tests.engine.process import RunningEngine, running_engine
from tests.support.amd_packages import AMD_PACKAGES, make_loadable_amd_package
from tests.support.tiny import make_tiny_package

CODE = "def area(width, height):\n    return width * height\n"
HELLO = {"messages": [{"role": "user", "content": "print"}], "max_tokens": 8, "temperature": 0}
ORDINARY = [letter for letter, row in AMD_PACKAGES.items() if row.domain == "com.microsoft"]

pytestmark = pytest.mark.skipif(
    system.operating_system() != "linux", reason="elsewhere the providers may be there"
)


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same weights in a package of ours."""
    return make_tiny_package(tmp_path_factory.mktemp("usual") / "tiny", context_length=32768)


@pytest.fixture(scope="module")
def engine(usual: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    with running_engine(tmp_path_factory.mktemp("home"), usual, EngineOptions(slots=1)) as engine:
        yield engine


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The outermost folder of each, as a user would name it."""
    folder = tmp_path_factory.mktemp("größe 1")
    return {letter: make_loadable_amd_package(folder, letter) for letter in AMD_PACKAGES}


@pytest.fixture(scope="module")
def for_the_cpu(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Without their providers, as a stand-in for them would need it."""
    folder = tmp_path_factory.mktemp("größe 2")
    return {
        letter: make_loadable_amd_package(folder, letter, on_cpu=True) for letter in AMD_PACKAGES
    }


def chat(engine: RunningEngine, package: Path, **body: Any) -> str:
    response = engine.http.post(
        "/v1/chat/completions", json={**HELLO, "model": str(package), **body}
    )
    assert response.status_code == 200, response.text
    content: str = response.json()["choices"][0]["message"]["content"]
    return content


def refusal(engine: RunningEngine, package: Path, **body: Any) -> tuple[str, str]:
    """(message, next step) of a completion that cannot be had."""
    body = {"prompt": CODE, "max_tokens": 1, "model": str(package), **body}
    response = engine.http.post("/v1/completions", json=body)
    assert response.status_code == 503, response.text
    error = response.json()["error"]
    assert "Traceback" not in response.text and error["code"] == "load_failed"
    return error["message"], error["next_step"]


def last_model(engine: RunningEngine) -> dict[str, Any]:
    model: dict[str, Any] = engine.health()["models"][-1]
    return model


# --- on the CPU --------------------------------------------------------------------------


@pytest.mark.parametrize("letter", ORDINARY)
def test_on_the_cpu_as_a_stand_in_it_completes_and_chats(
    engine: RunningEngine, usual: Path, for_the_cpu: dict[str, Path], letter: str
) -> None:
    package = for_the_cpu[letter]
    expected = engine.text(CODE, model=str(usual)), chat(engine, usual)
    assert (engine.text(CODE, model=str(package)), chat(engine, package)) == expected
    assert all(expected)
    engine.complete(CODE, model=str(package))
    assert engine.complete(CODE, model=str(package))["usage"]["computed_tokens"] == 1
    model = last_model(engine)
    assert (model["window"], model["continuation"], model["provider"]) == (8192, True, "CPU")
    assert model["fim"] == (letter == "B"), "the only Coder model of them"


@pytest.mark.parametrize("letter", ["A", "C"])
def test_as_published_it_answers_on_the_cpu_where_that_is_set(
    engine: RunningEngine, usual: Path, published: dict[str, Path], letter: str
) -> None:
    package = published[letter]
    expected = engine.text(CODE, model=str(usual)), chat(engine, usual)
    there = {"provider": "cpu"}
    assert engine.text(CODE, model=str(package), **there) == expected[0]
    assert chat(engine, package, **there) == expected[1]
    notice = last_model(engine)["notice"]
    assert "is made for the provider DML and runs on the CPU, as set" in notice


@pytest_asyncio.fixture
async def client(
    engine: RunningEngine, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LocalEngine]:
    monkeypatch.setenv("FIMBLE_HOME", str(engine.home))
    client = LocalEngine()
    yield client
    await client.aclose()


@pytest.mark.parametrize("letter", ORDINARY)
async def test_an_editor_gets_completions_and_chat_of_it(
    engine: RunningEngine,
    client: LocalEngine,
    for_the_cpu: dict[str, Path],
    tmp_path: Path,
    letter: str,
) -> None:
    engine.complete(CODE, model=str(for_the_cpu[letter]))  # from here on the one that is meant
    document, cursor = at_mark(f"{CODE}\n\ndef twice(w│):\n    return 2\n")
    await CompletionService(client).complete(document, cursor, CompletionSettings(), name="a")
    service = ChatService(
        lambda: client, OneFolder(tmp_path), Templates, lambda: ChatSettings(max_tokens=20)
    )
    answer = await service.ask(Question("What is it?"))
    assert answer.usage.completion_tokens > 0
    assert last_model(engine)["fim"] == (letter == "B")


# --- what cannot be had here ---------------------------------------------------------------

ON_WINDOWS = "Use it on Windows, with `pip install 'fimble[directml]'`. "
HERE = "Here, take a package for this machine: `fimble model pull qwen2.5-coder-0.5b`."
SLOWLY = " Or run it on the processor, slowly: `fimble engine start --provider cpu`."
NEXT_STEPS = {
    "A": ON_WINDOWS + HERE + SLOWLY,
    "B": "Install AMD's GPU provider and set AMDGPU_EP_PATH to the full path of "
    "libamdgpu-ep.so. " + HERE,
    "C": ON_WINDOWS + HERE + SLOWLY,
    "D": "Use it on Windows, inside AMD's Ryzen AI 1.7.1 environment. " + HERE,
    "E": "Install Ryzen AI 1.7.1 from AMD and start fimble inside its environment "
    '(README, "AMD hardware"). ' + HERE,
}


#: Releases of the runtime in which a provider came to be known.
SINCE = {"B": "0.18", "E": "0.13"}


def expected_next_step(letter: str) -> str:
    since = SINCE.get(letter, "0")
    release = [int(part) for part in find_runtime().version.split(".")[:2]]
    if release < [int(part) for part in since.split(".")]:
        pip = f"`pip install 'onnxruntime-genai>={since}'`"
        return f"Run `pip uninstall onnxruntime-genai`, then {pip}."
    return NEXT_STEPS[letter]


@pytest.mark.parametrize("letter", AMD_PACKAGES)
def test_without_its_provider_it_is_refused_with_the_next_step(
    engine: RunningEngine, published: dict[str, Path], letter: str
) -> None:
    message, next_step = refusal(engine, published[letter])
    assert AMD_PACKAGES[letter].provider.lower() in message.lower()
    assert next_step == expected_next_step(letter)


@pytest.mark.parametrize(
    "letter, why, own",
    [
        ("B", "its genai_config.json forbids it (session.disable_cpu_ep_fallback)", "AMDGPU"),
        (
            "D",
            "its graph has operators that only its own provider knows (com.ryzenai)",
            "RyzenAI",
        ),
        (
            "E",
            "its graph has operators that only its own provider knows (com.ryzenai)",
            "RyzenAI",
        ),
    ],
)
def test_what_the_cpu_cannot_run_is_not_tried_there(
    engine: RunningEngine, published: dict[str, Path], letter: str, why: str, own: str
) -> None:
    message, next_step = refusal(engine, published[letter], provider="cpu")
    assert message.endswith(f"cannot run on the CPU: {why}.")
    assert next_step == f"Use it with its own provider, {own}, or use a package for the CPU."


@pytest.mark.parametrize("letter", ["D", "E"])
def test_the_runtime_itself_knows_no_operators_of_ryzen_ai(
    engine: RunningEngine, for_the_cpu: dict[str, Path], letter: str
) -> None:
    """A configuration that was edited to name no provider does not help."""
    message, next_step = refusal(engine, for_the_cpu[letter])
    assert "it is made for AMD's Ryzen AI runtime and runs on no other" in message
    assert next_step.startswith("Start fimble inside AMD's Ryzen AI environment")


def test_a_refusal_leaves_the_model_that_is_there(
    engine: RunningEngine, usual: Path, published: dict[str, Path]
) -> None:
    before = engine.text(CODE, model=str(usual))
    for package in published.values():
        refusal(engine, package)
    loads = engine.metric("fimble_model_loads_total")
    assert engine.text(CODE, model=str(usual)) == before
    assert engine.metric("fimble_model_loads_total") == loads
