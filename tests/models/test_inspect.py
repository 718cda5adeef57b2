"""Inspection: what a package says of itself, and what is wrong with a broken one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import onnxruntime_genai as og
import pytest
from onnx import TensorProto

from fimble.errors import PackageError
from fimble.models.genai_config import Provider, Sampling
from fimble.models.inspection import Inspection, inspect_package, read_provenance
from fimble.models.onnx_graph import read_graph
from fimble.models.provenance import PROVENANCE_FILE
from fimble.models.store import CONFIG_FILE, Package, Store
from tests.support.amd_packages import (
    AMD_PACKAGES,
    KIB,
    MIB,
    make_amd_package,
    make_graph,
)
from tests.support.tiny import make_tiny_package

LFS_POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    "size 12345\n"
)


@pytest.fixture
def tiny(tmp_path: Path) -> Package:
    return Package("tiny-coder", make_tiny_package(tmp_path / "tiny"))


@pytest.fixture
def amd(tmp_path: Path) -> Package:
    """A package with a provider, external data and a nested folder: row B."""
    return found(make_amd_package(tmp_path, "B"))


def found(folder: Path) -> Package:
    return Store(folder.parent / "no-store").find(str(folder))


def edit_config(package: Package, change: Callable[[dict[str, Any]], object]) -> None:
    path = package.path / CONFIG_FILE
    config = json.loads(path.read_text(encoding="utf-8"))
    change(config)
    path.write_text(json.dumps(config), encoding="utf-8")


def check_problem(package: Package, message: str, next_step: str = "") -> Inspection:
    inspection = inspect_package(package)
    assert not inspection.whole
    assert inspection.problem is not None and message in inspection.problem
    assert inspection.next_step is not None and next_step in inspection.next_step
    return inspection


# --- what a whole package says -------------------------------------------------------------


def test_a_package_of_ours(tiny: Package) -> None:
    inspection = inspect_package(tiny)
    assert inspection.whole and inspection.problem is None
    assert (inspection.model_type, inspection.provider) == ("qwen2", Provider("CPU"))
    window = inspection.window
    assert (window.tokens, window.limited_by) == (2048, "context_length")
    # 2 layers, key and value, 2 heads of 16 numbers, in float32.
    assert inspection.kv_bytes_per_token == 2 * 2 * 2 * 16 * 4
    assert inspection.quantisation == "int4, block 64"
    assert inspection.fim
    on_disk = {p.name: p.stat().st_size for p in tiny.path.iterdir()}
    assert dict(inspection.files) == on_disk


def test_what_is_called_runnable_is_loaded_by_the_runtime(tiny: Package) -> None:
    assert inspect_package(tiny).whole
    assert og.Model(str(tiny.path)).type == "qwen2"


@pytest.mark.parametrize("letter", AMD_PACKAGES)
def test_each_of_amds_packages(tmp_path: Path, letter: str) -> None:
    row = AMD_PACKAGES[letter]
    inspection = inspect_package(found(make_amd_package(tmp_path, letter)))
    assert inspection.name == row.folder
    assert inspection.problem is None
    assert inspection.provider == Provider(row.provider, row.options)
    assert inspection.config.session_entries == row.session
    assert (inspection.window.tokens, inspection.window.limited_by) == row.window
    per_token, when_full = row.kv
    assert inspection.kv_bytes_per_token == per_token * KIB
    assert inspection.kv_bytes_at_window == when_full * MIB
    assert inspection.fim == row.fim
    assert inspection.quantisation == "int4, block 128"
    assert inspection.extras.architectures == ("Qwen2ForCausalLM",)
    assert inspection.config.search.share_buffer == row.share_buffer
    assert inspection.release == row.release
    assert (inspection.config.unknown_keys, inspection.extras.notes) == ((), ())


@pytest.mark.parametrize("letter", ["A", "B", "E"])
def test_sampling_defaults(tmp_path: Path, letter: str) -> None:
    inspection = inspect_package(found(make_amd_package(tmp_path, letter)))
    penalty = 1.0 if letter == "E" else 1.05
    beams = 1 if letter == "B" else None
    assert inspection.sampling == Sampling(None, 0.7, 20, 0.8, penalty, beams)


def test_the_runtimes_own_sampling_comes_first(tmp_path: Path) -> None:
    inspection = inspect_package(found(make_amd_package(tmp_path, "A", top_k=50, do_sample=True)))
    assert inspection.sampling == Sampling(True, 0.7, 50, 0.8, 1.05, None)


def test_the_template_of_its_own_comes_before_the_tokenizers(tmp_path: Path) -> None:
    templates = {
        letter: inspect_package(found(make_amd_package(tmp_path, letter))).extras.chat_template
        for letter in "AB"
    }
    assert templates == {"A": "tokenizer_config.json", "B": "chat_template.jinja"}


def test_a_hybrid_package_in_chunks_has_its_whole_window(tmp_path: Path) -> None:
    package = found(make_amd_package(tmp_path, "D", chunk_size=2048))
    assert inspect_package(package).window.tokens == 4096
    edit_config(package, lambda c: options_of(c).update(hybrid_opt_chunk_context="1"))
    window = inspect_package(package).window
    assert (window.tokens, window.limited_by) == (32768, "context_length")


def options_of(config: dict[str, Any]) -> dict[str, str]:
    session = config["model"]["decoder"]["session_options"]
    options: dict[str, str] = session["provider_options"][0]["RyzenAI"]
    return options


def test_search_max_length_limits_the_window(tiny: Package) -> None:
    edit_config(tiny, lambda c: c["search"].update(max_length=20))
    window = inspect_package(tiny).window
    assert (window.tokens, window.limited_by) == (20, "search.max_length")


@pytest.mark.parametrize(
    ("kind", "size"), [(TensorProto.FLOAT16, 2), (TensorProto.FLOAT, 4), (TensorProto.STRING, 2)]
)
def test_the_kv_element_is_as_large_as_the_graph_says(amd: Package, kind: int, size: int) -> None:
    make_graph(amd.path, "text.onnx", "text.onnx.data", kv=kind)
    assert inspect_package(amd).kv_bytes_per_token == 48 * 2 * 8 * 128 * size


def test_only_a_coder_fills_in_the_middle(tiny: Package, tmp_path: Path) -> None:
    assert inspect_package(tiny).fim
    chat = make_tiny_package(tmp_path / "tiny-chat", coder=False)
    assert not inspect_package(Package("tiny-chat", chat)).fim
    note = chat / PROVENANCE_FILE
    note.write_text(json.dumps({"name": "Qwen2.5 Coder 0.5B"}), encoding="utf-8")
    assert inspect_package(Package("tiny-chat", chat)).fim


def test_the_folder_around_amds_nested_one_counts_too(amd: Package) -> None:
    assert inspect_package(found(amd.path)).fim


def test_a_coder_without_the_tokens_does_not(tiny: Package) -> None:
    (tiny.path / "tokenizer.json").write_text('{"added_tokens": []}', encoding="utf-8")
    assert not inspect_package(tiny).fim


def test_the_importers_note_is_read(tiny: Package) -> None:
    note = read_provenance(tiny)
    assert (note.source_file, note.precision) == ("tiny.gguf", "int4")
    (tiny.path / PROVENANCE_FILE).unlink()
    assert read_provenance(tiny).describe() == "not made by fimble"


def test_the_cache_folder_of_a_download_is_not_listed(amd: Package) -> None:
    hidden = amd.path / ".cache" / "huggingface"
    hidden.mkdir(parents=True)
    (hidden / "x.metadata").write_text("x", encoding="utf-8")
    (amd.path / "cache").mkdir()
    (amd.path / "cache" / "a_meta.json").write_text("{}", encoding="utf-8")
    names = [name for name, _ in inspect_package(amd).files]
    assert "cache/a_meta.json" in names
    assert not any(name.startswith(".") for name in names)


# --- what is wrong with a broken one -------------------------------------------------------


def test_damaged_json_is_named_with_its_line(tiny: Package) -> None:
    (tiny.path / CONFIG_FILE).write_text('{\n "model": {\n  oops\n', encoding="utf-8")
    with pytest.raises(PackageError, match=r"genai_config\.json is not valid JSON: line 3"):
        inspect_package(tiny)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[]", "does not hold a JSON object"),
        (b"\xff\xfe{", "is not UTF-8"),
        (b"[" * 200_000, "is nested too deeply"),
    ],
)
def test_other_content_is_refused(tiny: Package, content: bytes, message: str) -> None:
    (tiny.path / CONFIG_FILE).write_bytes(content)
    with pytest.raises(PackageError, match=message):
        inspect_package(tiny)


def test_a_missing_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match="cannot be read: No such file"):
        inspect_package(Package("none", tmp_path))


def test_a_byte_order_mark_is_read_over_but_reported(tiny: Package) -> None:
    path = tiny.path / CONFIG_FILE
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert check_problem(tiny, "byte order mark", "UTF-8 without").window.tokens == 2048
    with pytest.raises(RuntimeError):
        og.Model(str(tiny.path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "names no .onnx file"),
        ('{"model": 3, "search": []}', "model is 3, not an object"),
        ('{"model": {"decoder": 0}}', "model.decoder is 0, not an object"),
    ],
)
def test_a_configuration_of_the_wrong_shape_is_a_problem(
    tiny: Package, content: str, message: str
) -> None:
    (tiny.path / CONFIG_FILE).write_text(content, encoding="utf-8")
    inspection = check_problem(tiny, message)
    assert (inspection.window.tokens, inspection.kv_bytes_per_token) == (0, 0)


@pytest.mark.parametrize("name", ["model.onnx", "model.onnx.data", "tokenizer.json"])
def test_a_missing_file_is_named(tiny: Package, name: str) -> None:
    (tiny.path / name).unlink()
    check_problem(tiny, f"{name} is missing", "Download the package again")


@pytest.mark.parametrize("name", ["model.onnx", "model.onnx.data", "tokenizer.json"])
def test_a_git_lfs_pointer_is_recognised(tiny: Package, name: str) -> None:
    (tiny.path / name).write_text(LFS_POINTER, encoding="utf-8", newline="\n")
    check_problem(tiny, f"{name} is a Git LFS pointer", "git lfs pull")


@pytest.mark.parametrize("name", ["model.onnx", "model.onnx.data"])
def test_an_empty_file_is_named(tiny: Package, name: str) -> None:
    (tiny.path / name).write_bytes(b"")
    check_problem(tiny, f"{name} is empty", "again")


def test_weights_that_are_cut_short_are_found_before_loading(tiny: Package) -> None:
    data = tiny.path / "model.onnx.data"
    data.write_bytes(data.read_bytes()[:-1])
    size = data.stat().st_size
    check_problem(tiny, f"model.onnx.data is cut short: it has {size:,} bytes", "again")
    with pytest.raises(RuntimeError):
        og.Model(str(tiny.path))


def test_the_hybrids_own_weights_file_is_needed_too(tmp_path: Path) -> None:
    package = found(make_amd_package(tmp_path, "D"))
    (package.path / "model_jit.pb.bin").unlink()
    check_problem(package, "model_jit.pb.bin is missing")


def test_a_graph_that_is_none_is_a_problem(tiny: Package) -> None:
    (tiny.path / "model.onnx").write_bytes(b"<html>not found</html>")
    check_problem(tiny, "model.onnx is not an ONNX model")


def test_a_graph_that_is_cut_short_is_a_problem(tiny: Package) -> None:
    graph = tiny.path / "model.onnx"
    graph.write_bytes(graph.read_bytes()[:-100])
    check_problem(tiny, "model.onnx is not an ONNX model, or is cut short")


@pytest.mark.parametrize(
    "name", ["../model.onnx", "/etc/model.onnx", "C:\\model.onnx", "..\\model.onnx", "a\0.onnx"]
)
def test_a_configuration_that_names_files_elsewhere_is_refused(tiny: Package, name: str) -> None:
    edit_config(tiny, lambda c: c["model"]["decoder"].update(filename=name))
    check_problem(tiny, "names a file outside the package", "Do not use this package")


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "C:\\secret"])
def test_a_graph_that_names_weights_elsewhere_is_refused(tiny: Package, name: str) -> None:
    path = tiny.path / "model.onnx"
    model = onnx.load(path, load_external_data=False)
    tensor = next(t for t in model.graph.initializer if t.external_data)
    next(e for e in tensor.external_data if e.key == "location").value = name
    path.write_bytes(model.SerializeToString())
    check_problem(tiny, f"model.onnx names a file outside the package: {name!r}")


@pytest.mark.parametrize(("key", "value"), [("offset", "-1"), ("length", "many"), ("location", "")])
def test_external_data_that_makes_no_sense_is_an_error(
    tmp_path: Path, key: str, value: str
) -> None:
    make_graph(tmp_path, "g.onnx", "g.data")
    model = onnx.load(tmp_path / "g.onnx", load_external_data=False)
    entries = model.graph.initializer[0].external_data
    next(e for e in entries if e.key == key).value = value
    (tmp_path / "g.onnx").write_bytes(model.SerializeToString())
    assert read_graph(tmp_path / "g.onnx").error.startswith("is damaged: ")


def test_external_data_without_a_length_is_as_long_as_its_tensor(tmp_path: Path) -> None:
    make_graph(tmp_path, "g.onnx", "g.data")
    model = onnx.load(tmp_path / "g.onnx", load_external_data=False)
    entries = model.graph.initializer[0].external_data
    del entries[next(n for n, e in enumerate(entries) if e.key == "length")]
    (tmp_path / "g.onnx").write_bytes(model.SerializeToString())
    assert read_graph(tmp_path / "g.onnx").external == {"g.data": 128 + 64 * 64}
