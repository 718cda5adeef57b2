"""From a GGUF file to a package: the right numbers, the same bytes, also after interruptions."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import gguf
import numpy as np
import pytest

from fimble.errors import ImportFailed
from fimble.models.gguf_import import HeadKind, Precision, data_file, import_gguf, package
from fimble.models.gguf_import.architecture import expected_tensors
from fimble.progress import ProgressEvent
from tests.support.mixed_gguf import GgufReference, make_mixed_gguf, mixed_architecture
from tests.support.reference import F32, PackageWeights, Reference
from tests.support.runtime import last_logits

Kind = gguf.GGMLQuantizationType

PROMPT = np.array([7, 260, 99, 258, 10, 64, 300, 5, 77, 31, 32, 12], dtype=np.int32)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_mixed_gguf(tmp_path_factory.mktemp("mixed") / "mixed.gguf")


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices are then cut into several pieces, as a real model's are."""
    monkeypatch.setattr(data_file, "_PIECE_WEIGHTS", 100 * 256)


def contents(folder: Path) -> dict[str, str]:
    return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in folder.iterdir()}


def off(got: F32, expected: F32) -> float:
    return float(np.linalg.norm(got - expected) / np.linalg.norm(expected))


# The rest is 8-bit activations, which the runtime uses with quantised weights.
@pytest.mark.parametrize(("precision", "tolerance"), [("fp16", 0.002), ("int8", 0.06)])
def test_logits_are_those_of_the_files_weights(
    tmp_path: Path, mixed: Path, precision: Precision, tolerance: float
) -> None:
    import_gguf(mixed, tmp_path / "package", precision=precision)
    expected = Reference(mixed_architecture(), GgufReference(mixed)).logits(PROMPT)[-1]
    assert off(last_logits(tmp_path / "package", PROMPT), expected) < tolerance


@pytest.mark.parametrize(
    ("head", "same_head", "kind"),
    [(Kind.Q8_0, False, "own"), (Kind.Q8_0, True, "shared"), (None, False, "shared")],
    ids=["own head", "the same head in another type", "no head"],
)
def test_int4_graph_computes_with_the_packages_weights(
    tmp_path: Path, head: Kind | None, same_head: bool, kind: HeadKind
) -> None:
    source = make_mixed_gguf(tmp_path / "x.gguf", head=head, same_head=same_head)
    import_gguf(source, tmp_path / "package")
    arch = mixed_architecture()
    assert json.loads((tmp_path / "package" / "fimble_package.json").read_text())["head"] == kind
    packed = PackageWeights(tmp_path / "package", arch, "int4", kind)
    expected = Reference(arch, packed).logits(PROMPT)[-1]
    assert off(last_logits(tmp_path / "package", PROMPT), expected) < 0.06
    for name, values in GgufReference(source).tensors.items():
        error = np.linalg.norm(packed(name) - values) / np.linalg.norm(values)
        assert error < 0.11, name


def test_exact_types_lose_nothing(tmp_path: Path) -> None:
    names = [f"blk.0.{part}.weight" for part in ("attn_q", "attn_k", "attn_v", "attn_output")]
    kinds = dict(zip(names, [Kind.Q8_0, Kind.Q5_0, Kind.Q4_0, Kind.Q4_0], strict=True))
    source = make_mixed_gguf(tmp_path / "x.gguf", kinds=kinds)
    truth = GgufReference(source)
    arch = mixed_architecture()
    import_gguf(source, tmp_path / "package", precision="int8")
    packed = PackageWeights(tmp_path / "package", arch, "int8", "own")
    for name in names:
        assert np.array_equal(packed(name), truth(name)), name


def test_a_file_in_4_bits_keeps_its_numbers(tmp_path: Path) -> None:
    """Where most matrices are Q4_0, int4 has GGUF's blocks of 32, and the same weights in them."""
    matrices = [
        name for name, shape in expected_tensors(mixed_architecture()).items() if len(shape) == 2
    ]
    source = make_mixed_gguf(tmp_path / "x.gguf", kinds=dict.fromkeys(matrices, Kind.Q4_0))
    import_gguf(source, tmp_path / "package")
    packed = PackageWeights(tmp_path / "package", mixed_architecture(), "int4", "own")
    truth = GgufReference(source)
    for name in matrices:
        assert np.array_equal(packed(name), truth(name)), name


def test_says_where_it_comes_from_and_nothing_else(tmp_path: Path, mixed: Path) -> None:
    import_gguf(mixed, tmp_path / "package", precision="int8")
    text = (tmp_path / "package" / "fimble_package.json").read_text(encoding="utf-8")
    assert json.loads(text) == {
        "block_size": 32,
        "format_version": 1,
        "head": "own",
        "importer_version": package.IMPORTER_VERSION,
        "kind": "qwen2",
        "license": None,
        "name": "Mixed Tiny",
        "precision": "int8",
        "source": {
            "file": "mixed.gguf",
            "sha256": hashlib.sha256(mixed.read_bytes()).hexdigest(),
        },
    }
    assert str(tmp_path) not in text


def test_same_file_same_bytes(tmp_path: Path, mixed: Path, small_pieces: None) -> None:
    import_gguf(mixed, tmp_path / "a")
    import_gguf(mixed, tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert "import.journal" not in contents(tmp_path / "a")


class Interrupted(Exception):
    """Stands for Ctrl-C and worse."""


def interrupt_after(count: int) -> Callable[[ProgressEvent], None]:
    """A progress function that breaks off at the nth event from the first byte written."""
    seen = 0

    def progress(event: ProgressEvent) -> None:
        nonlocal seen
        seen += event.stage in ("convert", "finish")
        if seen > count:
            raise Interrupted

    return progress


@pytest.mark.parametrize("count", [0, 1, 5, 17, 40, 60, 64])
def test_goes_on_after_an_interruption(
    tmp_path: Path, mixed: Path, small_pieces: None, count: int
) -> None:
    import_gguf(mixed, tmp_path / "whole")
    target = tmp_path / "broken off"
    with pytest.raises(Interrupted):
        import_gguf(mixed, target, progress=interrupt_after(count))
    assert not (target / "genai_config.json").exists()
    events: list[ProgressEvent] = []
    import_gguf(mixed, target, progress=events.append)
    first = next(e for e in events if e.stage == "convert")
    assert (first.done > 0) == (count > 0)
    assert contents(target) == contents(tmp_path / "whole")


def _cut_journal(folder: Path) -> None:
    journal = folder / "import.journal"
    journal.write_bytes(journal.read_bytes()[:-20])


def _garble_journal(folder: Path) -> None:
    journal = folder / "import.journal"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(lines[0] + b'{"piece": 999999, "hash": 3}\n' + b"".join(lines[1:]))


def _flip_data(folder: Path) -> None:
    with (folder / "model.onnx.data").open("r+b") as data:
        data.seek(20_000)
        byte = data.read(1)[0]
        data.seek(20_000)
        data.write(bytes([byte ^ 1]))


def _shorten_data(folder: Path) -> None:
    with (folder / "model.onnx.data").open("r+b") as data:
        data.truncate(10_000)


def _lose_data(folder: Path) -> None:
    (folder / "model.onnx.data").unlink()


def _lose_journal(folder: Path) -> None:
    (folder / "import.journal").unlink()


@pytest.mark.parametrize(
    "damage",
    [_cut_journal, _garble_journal, _flip_data, _shorten_data, _lose_data, _lose_journal],
)
def test_earlier_work_is_not_trusted(
    tmp_path: Path, mixed: Path, small_pieces: None, damage: Callable[[Path], None]
) -> None:
    import_gguf(mixed, tmp_path / "whole")
    target = tmp_path / "damaged"
    with pytest.raises(Interrupted):
        import_gguf(mixed, target, progress=interrupt_after(30))
    damage(target)
    import_gguf(mixed, target)
    assert contents(target) == contents(tmp_path / "whole")


def test_another_precision_starts_afresh(tmp_path: Path, mixed: Path) -> None:
    import_gguf(mixed, tmp_path / "whole", precision="int8")
    target = tmp_path / "mixed up"
    with pytest.raises(Interrupted):
        import_gguf(mixed, target, precision="int4", progress=interrupt_after(10))
    import_gguf(mixed, target, precision="int8")
    assert contents(target) == contents(tmp_path / "whole")


def test_a_finished_package_is_incomplete_while_it_is_made_anew(
    tmp_path: Path, mixed: Path
) -> None:
    import_gguf(mixed, tmp_path / "package")
    with pytest.raises(Interrupted):
        import_gguf(mixed, tmp_path / "package", progress=interrupt_after(3))
    assert not (tmp_path / "package" / "genai_config.json").exists()


def test_full_disk_is_said_before_any_work(
    tmp_path: Path, mixed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(ImportFailed, match=r"disk space.*free"):
        import_gguf(mixed, tmp_path / "package")
    assert not (tmp_path / "package" / "model.onnx.data").exists()


def test_destination_that_cannot_be_written(tmp_path: Path, mixed: Path) -> None:
    (tmp_path / "a file").write_text("in the way")
    with pytest.raises(ImportFailed, match="could not be written"):
        import_gguf(mixed, tmp_path / "a file" / "package")


def test_progress_ends_at_its_total(tmp_path: Path, mixed: Path) -> None:
    events: list[ProgressEvent] = []
    import_gguf(mixed, tmp_path / "package", progress=events.append)
    stages: dict[str, ProgressEvent] = {}
    for event in events:
        assert stages.get(event.stage, event).done <= event.done
        stages[event.stage] = event
    assert list(stages)[-2:] == ["convert", "finish"]
    assert all(event.done == event.total for event in stages.values())


@pytest.mark.model
def test_real_model_agrees_with_its_file(gguf_file: Path, real_package: Path) -> None:
    """The short form of benchmarks/import_quality.py; fewer positions would only be noise."""
    from benchmarks.import_quality import measure

    result = measure(gguf_file, real_package, 256, speed=False)
    assert result["top1_agreement"] >= 0.85
    assert result["mean_kl_nats"] < 0.08
