"""The tiny package: built fast, small, the same each time, and run by the real runtime."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import onnxruntime_genai as og
import pytest

from fimble.models.gguf_import import HeadKind, Precision
from tests.support.reference import PackageWeights, Reference
from tests.support.runtime import all_logits, last_logits, new_generator
from tests.support.tiny import make_tiny_package, tiny_architecture

PROMPT = np.array([7, 260, 99, 258, 10, 64, 300, 5, 77, 31, 32, 12], dtype=np.int32)


def test_is_small_and_built_in_no_time(tmp_path: Path) -> None:
    start = time.process_time()  # whatever else the machine is doing
    package = make_tiny_package(tmp_path / "tiny")
    assert time.process_time() - start < 2
    assert sum(f.stat().st_size for f in package.iterdir()) < 2_000_000


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    first = make_tiny_package(tmp_path / "a", seed=3)
    second = make_tiny_package(tmp_path / "b", seed=3)
    other = make_tiny_package(tmp_path / "c", seed=4)
    names = sorted(f.name for f in first.iterdir())
    assert names == sorted(f.name for f in second.iterdir())
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name
    assert (first / "model.onnx.data").read_bytes() != (other / "model.onnx.data").read_bytes()


# int4 and int8 compute with activations rounded to 8 bits (accuracy_level 4), which the
# float32 reference does not.
@pytest.mark.parametrize(
    ("precision", "tolerance"), [("fp16", 1e-4), ("int8", 0.05), ("int4", 0.05)]
)
@pytest.mark.parametrize("head", ["own", "shared"])
def test_logits_are_the_references(
    tmp_path: Path, precision: Precision, tolerance: float, head: HeadKind
) -> None:
    package = make_tiny_package(tmp_path / "tiny", precision=precision, tied=head == "shared")
    arch = tiny_architecture()
    expected = Reference(arch, PackageWeights(package, arch, precision, head)).logits(PROMPT)
    got = last_logits(package, PROMPT)
    assert got.shape == (arch.vocab,)
    assert np.abs(got - expected[-1]).max() < tolerance * np.abs(expected[-1]).max()


@pytest.mark.parametrize("precision", ["int4", "fp16"])
def test_pieces_give_the_same_as_one_go(tmp_path: Path, precision: Precision) -> None:
    package = make_tiny_package(tmp_path / "tiny", precision=precision)
    whole = last_logits(package, PROMPT)
    pieces = last_logits(package, PROMPT[:5], PROMPT[5:6], PROMPT[6:])
    assert np.abs(whole - pieces).max() < 0.05 * np.abs(whole).max()


def test_all_logits_graph_ends_with_the_pruned_graphs(tmp_path: Path) -> None:
    package = make_tiny_package(tmp_path / "tiny")
    logits = all_logits(package, PROMPT)
    assert logits.shape == (len(PROMPT), tiny_architecture().vocab)
    assert np.abs(logits[-1] - last_logits(package, PROMPT)).max() < 1e-3


def test_all_logits_are_the_references(tmp_path: Path) -> None:
    package = make_tiny_package(tmp_path / "tiny", precision="fp16")
    arch = tiny_architecture()
    expected = Reference(arch, PackageWeights(package, arch, "fp16", "own")).logits(PROMPT)
    assert np.abs(all_logits(package, PROMPT) - expected).max() < 1e-4 * np.abs(expected).max()


def test_configured_for_all_logits(tmp_path: Path) -> None:
    package = make_tiny_package(tmp_path / "tiny", all_logits=True)
    model = og.Model(str(package))
    params = og.GeneratorParams(model)
    params.set_search_options(max_length=64)
    generator = og.Generator(model, params)
    generator.append_tokens(PROMPT)
    assert np.asarray(generator.get_output("logits")).shape[1] == len(PROMPT)


def test_never_says_a_control_token(tmp_path: Path) -> None:
    generator = new_generator(make_tiny_package(tmp_path / "tiny"), max_length=200)
    generator.append_tokens(PROMPT)
    while not generator.is_done():
        generator.generate_next_token()
    assert len(generator.get_sequence(0)) == 200
