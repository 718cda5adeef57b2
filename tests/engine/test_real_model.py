"""The engine with the real Qwen2.5-Coder 0.5B: reuse changes nothing, and it knows code."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from fimble.engine import control
from fimble.engine.client import LocalEngine
from fimble.engine.loaded import LoadedModel, load_model
from fimble.engine.package import read_package_config
from fimble.engine.protocol import CompletionRequest, Control, Segment, Text
from fimble.engine.runtime import Logits
from fimble.engine.slots import Slot
from fimble.engine.tokens import PackageTokenizer

pytestmark = pytest.mark.model

#: How far logits may differ between one prefill and another cut of the same prompt: the
#: matrix products are rounded to 8 bits block by block, and differently for one row than
#: for many. Two tokens that are nearer than this are a tie that either may win.
TIE = 0.5


@pytest.fixture(scope="module")
def loaded(real_package: Path) -> Iterator[LoadedModel]:
    config = read_package_config(real_package)
    tokenizer = PackageTokenizer(real_package / "tokenizer.json")
    loaded = load_model(config, tokenizer, context_tokens=1024, threads=0, slots=2)
    yield loaded
    loaded.close()


def slot_of(loaded: LoadedModel) -> Slot:
    assert loaded.pool is not None
    holder = object()
    slot = loaded.pool.take([0], "", holder, lambda _: True)
    assert slot is not None
    return slot


def greedy(slot: Slot, prompt: Sequence[int], count: int) -> tuple[list[int], list[Logits]]:
    """The next tokens, and the logits that each was chosen from."""
    list(slot.seek(prompt, 32))
    tokens: list[int] = []
    seen: list[Logits] = []
    for _ in range(count):
        seen.append(slot.session.logits().copy())
        tokens.append(int(np.argmax(seen[-1])))
        slot.push(tokens[-1])
    return tokens, seen


def test_reused_output_equals_fresh_output(loaded: LoadedModel) -> None:
    """Someone types, corrects and undoes; each prompt is asked with reuse and afresh."""
    encode = loaded.tokenizer.encode_text
    start = "import math\n\n\nclass Circle:\n    def __init__(self, radius):\n"
    texts = [
        start + "        self.radius = radius\n\n    def area(self):\n        return ",
        start + "        self.radius = radius\n\n    def area(self):\n        return math.",
        start + "        self.r = radius\n\n    def area(self):\n        return math.pi * ",
        start + "        self.r = radius\n\n    def circumference(self):\n        ",
        start + "        self.radius = radius\n\n    def area(self):\n        return ",
        start,
    ]
    reusing, fresh = slot_of(loaded), slot_of(loaded)
    exact = 0
    for text in texts:
        prompt = list(encode(text))
        reused = reusing.reusable(prompt)
        assert reused > len(encode(start)) // 2 or text is texts[0]
        with_reuse, _ = greedy(reusing, prompt, 10)
        list(fresh.seek([1, 2, 3], 0))
        assert fresh.reusable(prompt) == 0
        without, logits = greedy(fresh, prompt, 10)
        exact += with_reuse == without
        for place, (one, other) in enumerate(zip(with_reuse, without, strict=True)):
            if one != other:
                gap = float(logits[place][other] - logits[place][one])
                assert gap < TIE, f"not a tie: {gap} after {text!r}"
                break
    assert exact >= len(texts) - 1


async def test_a_function_body_is_completed(
    real_package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path))
    engine = LocalEngine(model=str(real_package))
    try:
        info = await engine.model_info()
        assert info.fim and info.continuation and info.window == 8192
        prompt: list[Segment] = [
            Control("fim_prefix"),
            Text('def fibonacci(n):\n    """The n-th Fibonacci number, recursively."""\n'),
            Text("    if n < 2:\n        return n\n    return "),
            Control("fim_suffix"),
            Text("\n\n\nprint(fibonacci(10))\n"),
            Control("fim_middle"),
        ]
        request = CompletionRequest(prompt, max_tokens=24, stop=("\n",), document="fib.py")
        chunks = [chunk async for chunk in engine.complete(request)]
        text = "".join(chunk.text for chunk in chunks)
        assert text.replace(" ", "") == "fibonacci(n-1)+fibonacci(n-2)"
        assert chunks[-1].finish_reason == "stop"
        again = [chunk async for chunk in engine.complete(request)]
        assert "".join(chunk.text for chunk in again) == text
        assert again[-1].usage is not None and again[-1].usage.computed_tokens == 1
    finally:
        await engine.aclose()
        await asyncio.to_thread(control.stop)
