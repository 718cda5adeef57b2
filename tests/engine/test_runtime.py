"""The runtime's traps, each shown on a real generator and then shown to be closed.

Runs on onnxruntime-genai 0.11.2, 0.13.1 and 0.18.0 alike.
"""

from __future__ import annotations

import importlib.metadata
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fimble.engine.capabilities import Capabilities, probe_capabilities
from fimble.engine.loaded import load_model
from fimble.engine.options import EngineOptions
from fimble.engine.package import read_package_config
from fimble.engine.runtime import DISTRIBUTIONS, Model, Session, find_runtime
from fimble.engine.tokens import PackageTokenizer
from fimble.errors import GenerationFailed, LoadFailed, RuntimeMissing

IDS = [(number * number * 7 + number * 3) % 300 for number in range(70)]


@pytest.fixture(scope="module")
def model(tiny: Path) -> Model:
    model = Model(read_package_config(tiny))
    model.continuation = True
    return model


def after(model: Model, ids: list[int]) -> Any:
    """The logits after ``ids``, computed afresh in one piece."""
    session = model.session(256)
    session.append(ids)
    return session.logits().copy()


def generator_of(session: Session) -> Any:
    return session._generator


# --- which distribution ------------------------------------------------------------------


def test_one_distribution_is_found() -> None:
    assert find_runtime([("onnxruntime-genai-cuda", "0.13.1")]).name == "onnxruntime-genai-cuda"
    assert find_runtime().version == importlib.metadata.version(find_runtime().name)


def test_none_is_an_error_that_names_the_extra() -> None:
    with pytest.raises(RuntimeMissing, match=r"fimble\[cpu\]"):
        find_runtime([("numpy", "2.0")])


@pytest.mark.parametrize("second", DISTRIBUTIONS[1:])
def test_two_are_an_error_that_names_both(second: str) -> None:
    with pytest.raises(RuntimeMissing) as caught:
        find_runtime([("onnxruntime-genai", "0.18.0"), (second, "0.13.1")])
    assert second in caught.value.message
    assert caught.value.next_step.startswith("Run `pip uninstall onnxruntime-genai")


# --- sliced prefill, rewinding, choosing -------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 32, 70])
def test_slices_give_what_one_prefill_gives(model: Model, size: int) -> None:
    session = model.session(256)
    for start in range(0, len(IDS), size):
        session.append(IDS[start : start + size])
    assert session.length == len(IDS)
    np.testing.assert_allclose(session.logits(), after(model, IDS), atol=1e-3)


def test_rewind_and_append_gives_what_a_fresh_prefill_gives(model: Model) -> None:
    session = model.session(256)
    session.append(IDS)
    for token in (5, 6, 7):
        session.append([token])
    session.rewind(60)
    session.append(IDS[60:])
    np.testing.assert_allclose(session.logits(), after(model, IDS), atol=1e-3)


def test_trap_rewind_without_append_answers_wrongly(model: Model) -> None:
    session = model.session(256)
    session.append(IDS)
    session.rewind(60)
    bare = np.asarray(generator_of(session).get_logits()).reshape(-1, 512)[-1]
    assert np.abs(bare - after(model, IDS[:60])).max() > 0.1, "the trap is gone: simplify"
    with pytest.raises(ValueError, match="nothing was appended"):
        session.logits()


def test_trap_append_after_generate_next_token_leaves_a_hole(model: Model) -> None:
    session = model.session(256)
    session.append(IDS)
    bare = generator_of(session)
    bare.generate_next_token()
    chosen = int(bare.get_next_tokens()[0])
    bare.append_tokens(np.array([5, 6], np.int32))
    corrupt = np.asarray(bare.get_logits()).reshape(-1, 512)[-1]
    right = after(model, [*IDS, chosen, 5, 6])
    assert np.abs(corrupt - right).max() > 0.01, "the trap is gone: simplify"

    session = model.session(256)
    session.append(IDS)
    session.append([int(np.argmax(session.logits()))])
    session.append([5, 6])
    np.testing.assert_allclose(session.logits(), right, atol=1e-3)


def test_choosing_without_continuation_equals_appending(tiny: Path, model: Model) -> None:
    one_shot = Model(read_package_config(tiny))
    assert not one_shot.continuation

    def greedy(model: Model) -> list[int]:
        session = model.session(256)
        session.append(IDS)
        tokens = []
        for _ in range(40):
            tokens.append(int(np.argmax(session.logits()[:300])))
            session.append([tokens[-1]])
        return tokens

    assert greedy(one_shot) == greedy(model)


def test_without_continuation_a_second_append_is_refused(tiny: Path) -> None:
    session = Model(read_package_config(tiny)).session(256)
    session.append(IDS[:10])
    with pytest.raises(ValueError, match="cannot continue"):
        session.append(IDS[10:])


def test_the_window_is_checked_before_the_runtime_is(model: Model) -> None:
    session = model.session(20)
    with pytest.raises(GenerationFailed, match="70 tokens do not fit the window of 20"):
        session.append(IDS)
    session.append(IDS[:20])
    with pytest.raises(GenerationFailed, match="21 tokens"):
        session.append([1])


def test_a_cache_larger_than_the_models_window_is_a_clear_error(model: Model) -> None:
    with pytest.raises(GenerationFailed, match="larger than its context_length") as caught:
        model.session(40_000)
    assert "40000" in caught.value.message and caught.value.next_step


def test_sessions_of_one_model_interleave(model: Model) -> None:
    first, second = model.session(256), model.session(256)
    other = list(reversed(IDS))
    for start in range(0, len(IDS), 16):
        first.append(IDS[start : start + 16])
        second.append(other[start : start + 16])
    np.testing.assert_allclose(first.logits(), after(model, IDS), atol=1e-3)
    np.testing.assert_allclose(second.logits(), after(model, other), atol=1e-3)


# --- the probe ---------------------------------------------------------------------------


class NoContinuation:
    """A generator of a provider that appends once only, as DML and AMDGPU do."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self._appended = False

    def append_tokens(self, ids: Any) -> None:
        if self._appended:
            raise RuntimeError(
                "Continuous decoding is not supported on the selected device type (DML)."
            )
        self._appended = True
        self._real.append_tokens(ids)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class WrongRewind(NoContinuation):
    """A generator that forgets to forget."""

    def append_tokens(self, ids: Any) -> None:
        self._real.append_tokens(ids)

    def rewind_to(self, length: int) -> None:
        self._real.append_tokens(np.array([200, 201, 202], np.int32))


def wrapped(tiny: Path, wrapper: type[NoContinuation]) -> Model:
    """A model whose generators behave as the wrapper says."""
    model = Model(read_package_config(tiny))
    make = model._og.Generator

    class Runtime:
        GeneratorParams = model._og.GeneratorParams

        @staticmethod
        def Generator(model: Any, params: Any) -> Any:
            return wrapper(make(model, params))

    model._og = Runtime
    return model


def test_the_probe_believes_what_it_sees(tiny: Path) -> None:
    def probed(model: Model) -> Capabilities:
        return probe_capabilities(model, 300)

    assert probed(Model(read_package_config(tiny))) == Capabilities(True, True, True, True)
    assert probed(wrapped(tiny, NoContinuation)) == Capabilities(False, False, True, True)
    assert probed(wrapped(tiny, WrongRewind)) == Capabilities(True, False, True, True)


def test_loading_measures_and_reports(tiny: Path) -> None:
    config = read_package_config(tiny)
    tokenizer = PackageTokenizer(tiny / "tokenizer.json")
    loaded = load_model(
        config, tokenizer, options=EngineOptions(context_tokens=512, threads=1, slots=2)
    )
    assert loaded.info.window == 512
    assert loaded.info.continuation and loaded.info.fim
    assert loaded.info.provider == "CPU"
    assert loaded.info.prefill_tokens_per_s > 0 and loaded.info.decode_tokens_per_s > 0
    assert (
        load_model(
            config, tokenizer, options=EngineOptions(context_tokens=10**6, threads=0, slots=1)
        ).window
        == 2048
    )


# --- packages that cannot be loaded ------------------------------------------------------


def damaged(tiny: Path, folder: Path, **changes: Any) -> Path:
    """A copy of the package with genai_config.json changed by dotted paths."""
    shutil.copytree(tiny, folder)
    path = folder / "genai_config.json"
    config = json.loads(path.read_bytes())
    for dotted, value in changes.items():
        *parents, last = dotted.split("__")
        place = config
        for name in parents:
            place = place[name]
        place[last] = value
    path.write_text(json.dumps(config), encoding="utf-8")
    return folder


def load_error(folder: Path) -> LoadFailed:
    with pytest.raises(LoadFailed) as caught:
        Model(read_package_config(folder))
    assert str(folder) in caught.value.message
    assert caught.value.next_step
    return caught.value


def test_missing_weights(tiny: Path, tmp_path: Path) -> None:
    folder = damaged(tiny, tmp_path / "p")
    (folder / "model.onnx.data").unlink()
    assert "weights" in load_error(folder).message


def test_truncated_weights(tiny: Path, tmp_path: Path) -> None:
    folder = damaged(tiny, tmp_path / "p")
    data = folder / "model.onnx.data"
    data.write_bytes(data.read_bytes()[:1000])
    assert "incomplete" in load_error(folder).message


def test_a_git_lfs_pointer_for_the_graph(tiny: Path, tmp_path: Path) -> None:
    folder = damaged(tiny, tmp_path / "p")
    (folder / "model.onnx").write_text("version https://git-lfs.github.com/spec/v1\n")
    error = load_error(folder)
    assert "Git LFS" in error.message
    assert "git lfs pull" in error.next_step


@pytest.mark.parametrize("provider", ["DML", "RyzenAI", "AMDGPU", "NoSuchProvider"])
def test_a_provider_that_is_not_there(tiny: Path, tmp_path: Path, provider: str) -> None:
    options: dict[str, Any] = {"provider_options": [{provider: {}}]}
    folder = damaged(tiny, tmp_path / "p", model__decoder__session_options=options)
    error = load_error(folder)
    # Their names are spelled by the runtime as it likes.
    assert provider.lower() in error.message.lower()


def test_an_unknown_setting_is_named(tiny: Path, tmp_path: Path) -> None:
    folder = damaged(tiny, tmp_path / "p", search__custom_allocator=1)
    assert "custom_allocator" in load_error(folder).message


def test_a_folder_above_the_package_gets_a_hint(tiny: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny, tmp_path / "outer" / "inner")
    with pytest.raises(LoadFailed) as caught:
        read_package_config(tmp_path / "outer")
    assert str(tmp_path / "outer" / "inner") in caught.value.next_step


@pytest.mark.parametrize(
    "content, cause",
    [
        (b"{", "not valid JSON"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b"{}", r"model\.context_length is missing"),
        (b"[1]", "does not hold a JSON object"),
        (b'{"model": {"context_length": NaN}}', "NaN is not a number"),
        (b'{"model": {"context_length": "1"}}', "context_length is '1', not a whole number"),
        (b'{"model": {"decoder": {"filename": "../m.onnx"}}}', "a file outside the package"),
        (b"version https://git-lfs", "Git LFS pointer"),
    ],
)
def test_a_bad_genai_config(tmp_path: Path, content: bytes, cause: str) -> None:
    (tmp_path / "genai_config.json").write_bytes(content)
    with pytest.raises(LoadFailed, match=cause):
        read_package_config(tmp_path)
