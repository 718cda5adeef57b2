"""A second real provider: WebGPU's plug-in computes what the CPU computes elsewhere.

Through the engine as everything else is, over HTTP. The device is SwiftShader, in software:
it is slow, and shows nothing of how fast a GPU would be.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fimble.engine.options import EngineOptions
from fimble.models.gguf_import import Precision
from tests.engine.process import RunningEngine, running_engine
from tests.engine.test_busy_engine import is_idle, post_and_leave_open
from tests.support.tiny import make_tiny_package
from tests.support.waiting import until
from tests.support.webgpu import software_gpu

CODE = "def area(width, height):\n    return width * height\n"
FIM = [
    {"control": "fim_prefix"},
    {"text": CODE},
    {"control": "fim_suffix"},
    {"text": "\n"},
    {"control": "fim_middle"},
    {"text": "    retu"},
]
CANCELLED = 'fimble_requests_total{end="cancelled"}'
GENERATED = "fimble_generated_tokens_total"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With one matrix for embedding and LM head, as the small Coder models have it."""
    folder = tmp_path_factory.mktemp("packages") / "tiny"
    return make_tiny_package(folder, precision="int8", tied=True)


@pytest.fixture(scope="module")
def gpu(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    device = software_gpu()
    options = EngineOptions(
        context_tokens=256, slots=2, provider="webgpu", provider_library=str(device.library)
    )
    with device.offered(), running_engine(tmp_path_factory.mktemp("home"), package, options) as gpu:
        yield gpu


def test_it_is_the_gpu_that_computes_and_all_of_its_capabilities_are_there(
    gpu: RunningEngine,
) -> None:
    (model,) = gpu.health()["models"]
    assert model["provider"] == "WebGPU"
    assert model["continuation"] and model["healing"] and not model["notice"]
    assert all(model["capabilities"].values()), model["capabilities"]


def test_it_predicts_what_the_cpu_predicts(
    gpu: RunningEngine, package: Path, tmp_path: Path
) -> None:
    with running_engine(tmp_path, package, EngineOptions(context_tokens=256)) as cpu:
        assert gpu.text(CODE, max_tokens=1) == cpu.text(CODE, max_tokens=1)


def test_a_prompt_is_continued_and_rewound(gpu: RunningEngine) -> None:
    first = gpu.complete(CODE, max_tokens=4)["usage"]
    longer = gpu.complete(CODE + "print", max_tokens=4)["usage"]
    assert longer["reused_tokens"] == first["prompt_tokens"]
    shorter = gpu.complete(CODE[: CODE.index("\n") + 1] + "class", max_tokens=4)["usage"]
    assert 0 < shorter["reused_tokens"] < first["prompt_tokens"]


def test_a_stream_fills_in_the_middle_and_heals(gpu: RunningEngine) -> None:
    body = {"prompt": FIM, "max_tokens": 6, "heal": True}
    events = gpu.events("/v1/completions", body)
    assert "".join(event["choices"][0]["text"] for event in events)
    assert events[-1]["choices"][0]["finish_reason"] == "length"


def test_a_dropped_connection_stops_it(gpu: RunningEngine) -> None:
    stopped, before = gpu.metric(CANCELLED), gpu.metric(GENERATED)
    body = {"prompt": "class", "max_tokens": 200, "temperature": 1.0, "seed": 1, "top_k": 50}
    connection = post_and_leave_open(gpu, body)
    until(lambda: gpu.metric(GENERATED) > before)
    connection.close()
    until(lambda: is_idle(gpu))
    assert gpu.metric(CANCELLED) == stopped + 1
    assert gpu.metric(GENERATED) - before < 200
    assert gpu.text(CODE, max_tokens=1), "it goes on working"


@pytest.mark.parametrize(
    "precision, cause",
    [
        ("int4", "this provider cannot look up its 4-bit embedding"),
        ("fp16", "this device, or its driver, does not compute in half precision"),
    ],
)
def test_what_it_cannot_compute_is_refused_with_a_precision_that_works(
    gpu: RunningEngine, package: Path, tmp_path: Path, precision: Precision, cause: str
) -> None:
    other = make_tiny_package(tmp_path / precision, precision=precision, tied=True)
    response = gpu.http.post("/load", json={"model": str(other)})
    assert response.status_code == 503
    error = response.json()["error"]
    assert cause in error["message"]
    assert "--precision int8" in error["next_step"]
    assert gpu.text(CODE, model=str(package), max_tokens=1), "int8 does"
