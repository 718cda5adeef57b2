"""The reader of genai_config.json: tolerant of what the runtime takes, and hard to hurt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnxruntime_genai as og
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fimble.engine.package import read_package_config
from fimble.errors import FimbleError, LoadFailed, PackageError
from fimble.models.genai_config import (
    Provider,
    canonical_provider,
    read_genai_config,
)
from fimble.models.inspection import inspect_package, release_in
from fimble.models.package_extras import read_chat_template, read_extras
from fimble.models.store import Package
from fimble.models.window import real_window
from tests.support.amd_packages import AMD_PACKAGES, NESTED, make_amd_package
from tests.support.tiny import make_tiny_package


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_package(tmp_path_factory.mktemp("tiny") / "tiny-coder")


def config_of(folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((folder / "genai_config.json").read_text(encoding="utf-8"))
    return config


def put(config: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """A copy of ``config`` with the value at a dotted key."""
    changed: dict[str, Any] = json.loads(json.dumps(config))
    *parents, last = key.split("/")
    place = changed
    for name in parents:
        place = place[name]
    place[last] = value
    return changed


def write(folder: Path, config: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = config if isinstance(config, str) else json.dumps(config)
    (folder / "genai_config.json").write_text(text, encoding="utf-8", newline="\n")
    return folder


# --- providers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("dml", "DML"),
        ("DmlExecutionProvider", "DML"),
        ("AMDGPU", "AMDGPU"),
        ("amdgpuexecutionprovider", "AMDGPU"),
        ("ryzenai", "RyzenAI"),
        ("webgpu", "WebGPU"),
        ("CUDAExecutionProvider", "cuda"),
        ("Something", "Something"),
        ("ExecutionProvider", "ExecutionProvider"),
    ],
)
def test_a_provider_is_known_in_any_spelling(spelled: str, name: str) -> None:
    assert canonical_provider(spelled) == name


def test_all_providers_and_their_options_are_kept_in_order(tmp_path: Path, tiny: Path) -> None:
    listed = [{"dml": {"device_id": "1", "wait": True, "n": 3}}, {"CPU": {}}]
    key = "model/decoder/session_options/provider_options"
    config = read_genai_config(write(tmp_path, put(config_of(tiny), key, listed)))
    assert config.providers == (
        Provider("dml", {"device_id": "1", "wait": "1", "n": "3"}),
        Provider("CPU"),
    )


# --- the window ----------------------------------------------------------------------------


def test_the_smallest_of_the_four_limits_is_the_window(tmp_path: Path) -> None:
    package = make_amd_package(tmp_path, "E", max_length=8000)
    window = real_window(read_genai_config(package))
    assert (window.tokens, window.limited_by) == (8000, "search.max_length")
    assert window.limits == {
        "context_length": 32768,
        "search.max_length": 8000,
        "max_length_for_kv_cache": 16384,
        "hybrid_opt_max_seq_length": 16384,
    }


@pytest.mark.parametrize("letter", AMD_PACKAGES)
def test_the_engine_takes_the_real_window_too(tmp_path: Path, letter: str) -> None:
    row = AMD_PACKAGES[letter]
    outer = make_amd_package(tmp_path, letter)
    config = read_package_config(outer / NESTED if row.nested else outer)
    assert config.context_length == row.window[0]
    assert config.providers == (row.provider,)
    assert config.eos_ids == {151643, 151645}


@pytest.mark.parametrize("value", ["0", "-1", "many", "1e3", "9" * 30, ""])
def test_a_limit_of_the_provider_that_makes_no_sense_is_named(tmp_path: Path, value: str) -> None:
    folder = make_amd_package(tmp_path, "E")
    key = "model/decoder/session_options/provider_options"
    options = {**AMD_PACKAGES["E"].options, "max_length_for_kv_cache": value}
    write(folder, put(config_of(folder), key, [{"RyzenAI": options}]))
    inspection = inspect_package(Package("e", folder))
    assert inspection.problem is not None
    assert "provider_options.RyzenAI.max_length_for_kv_cache is" in inspection.problem
    with pytest.raises(LoadFailed, match="max_length_for_kv_cache"):
        read_package_config(folder)


# --- keys ----------------------------------------------------------------------------------

# key, value: whether the runtime refuses it
KEYS = [
    ("remark", "text", False),
    ("number", 3, False),
    ("section", {}, True),
    ("list", [], True),
    ("model/remark", "text", True),
    ("model/decoder/remark", 1, True),
    ("search/custom_allocator", 1, True),
    ("model/decoder/session_options/session.anything", "1", False),
    ("model/decoder/session_options/anything", 1, True),
    ("search/random_seed", 1, False),
    ("model/tokenizer_dir", "", False),
]


@pytest.mark.parametrize(("key", "value", "refused"), KEYS)
def test_keys_are_sorted_as_the_runtime_sorts_them(
    tmp_path: Path, tiny: Path, key: str, value: Any, refused: bool
) -> None:
    for file in tiny.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "genai_config.json").unlink()
    folder = write(tmp_path, put(config_of(tiny), key, value))
    named = key.replace("/", ".")
    config = read_genai_config(folder)
    assert (named in config.unknown_keys) == refused
    assert (named in config.ignored_keys) == (not refused and "/" not in key)
    if refused:
        with pytest.raises(RuntimeError):
            og.Config(str(folder))
    else:
        og.Config(str(folder))


# --- hostile input -------------------------------------------------------------------------

WRONG = [
    ("model", 3),
    ("model", []),
    ("model/context_length", 0),
    ("model/context_length", -5),
    ("model/context_length", 10**30),
    ("model/context_length", 1.5),
    ("model/context_length", "32768"),
    ("model/context_length", True),
    ("model/context_length", None),
    ("model/vocab_size", 10**12),
    ("model/eos_token_id", "x"),
    ("model/eos_token_id", [1, None]),
    ("model/type", 3),
    ("model/decoder", "x"),
    ("model/decoder/num_hidden_layers", 10**6),
    ("model/decoder/num_key_value_heads", -1),
    ("model/decoder/head_size", 1e300),
    ("model/decoder/filename", ["model.onnx"]),
    ("model/decoder/session_options", []),
    ("model/decoder/session_options/provider_options", {}),
    ("model/decoder/session_options/provider_options", ["dml"]),
    ("model/decoder/session_options/provider_options", [{"dml": 3}]),
    ("search", "x"),
    ("search/max_length", 2**31),
    ("search/temperature", "hot"),
    ("search/top_p", -0.5),
    ("search/past_present_share_buffer", "yes"),
]


@pytest.mark.parametrize(("key", "value"), WRONG)
def test_a_value_that_cannot_be_meant_is_named_by_its_key(
    tmp_path: Path, tiny: Path, key: str, value: Any
) -> None:
    folder = write(tmp_path / "p", put(config_of(tiny), key, value))
    found = inspect_package(Package("p", folder))
    assert found.problem is not None and found.next_step
    assert "genai_config.json cannot be meant: " in found.problem
    assert key.rpartition("/")[2] in found.problem
    assert len(found.problem) < 300
    with pytest.raises(LoadFailed):
        read_package_config(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"model": {"context_length": NaN}}', "NaN is not a number"),
        ('{"model": {"context_length": -Infinity}}', "-Infinity is not a number"),
        ('{"model": {"context_length": ' + "9" * 6000 + "}}", "is not valid JSON|not a whole"),
        ('{"model":' * 100_000, "nested too deeply"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": "' + "x" * (5 << 20) + '"}', "larger than"),
    ],
    ids=["nan", "infinity", "digits", "objects", "arrays", "size"],
)
def test_json_that_means_harm_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    folder = write(tmp_path / "p", text)
    try:
        problem = inspect_package(Package("p", folder)).problem or ""
    except PackageError as error:
        problem = str(error)
    assert any(each in problem for each in message.split("|"))
    with pytest.raises(LoadFailed):
        read_package_config(folder)


PROVIDER_OPTIONS = "model/decoder/session_options/provider_options"

CODE = [
    ("model/decoder/session_options/custom_ops_library", "ops.so"),
    ("model/decoder/session_options/custom_ops_library", "ops"),
    ("model/decoder/session_options/session.x", "C:\\evil.DLL"),
    (PROVIDER_OPTIONS, [{"QNN": {"backend_path": "QnnHtp.dll"}}]),
    (PROVIDER_OPTIONS, [{"RyzenAI": {"anything": "lib/x.so.1"}}]),
    ("model/vision", {"session_options": {"custom_ops_library": "x.dylib"}}),
]
ELSEWHERE = [
    ("model/decoder/filename", "/model.onnx"),
    ("model/decoder/filename", "../model.onnx"),
    ("model/tokenizer_dir", ".."),
    ("model/tokenizer_dir", "/etc"),
    ("model/decoder/pipeline", [{"a": {"filename": "b/../../c.onnx"}}]),
    ("model/decoder/pipeline", {"a": {"filename": "C:c.onnx"}}),
    ("model/vision", {"config_filename": "\\\\server\\share\\x.json"}),
    ("model/decoder/shared_initializers", {"w": {"data_file": "../w"}}),
    (PROVIDER_OPTIONS, [{"RyzenAI": {"external_data_file": "/dev/zero"}}]),
    (PROVIDER_OPTIONS, [{"RyzenAI": {"cache_dir": "..\\..\\x"}}]),
]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [(*each, "names a library") for each in CODE]
    + [(*each, "names a file outside the package") for each in ELSEWHERE],
)
def test_code_and_what_lies_elsewhere_are_refused_wherever_they_are_named(
    tmp_path: Path, tiny: Path, key: str, value: Any, message: str
) -> None:
    folder = write(tmp_path / "p", put(config_of(tiny), key, value))
    found = inspect_package(Package("p", folder))
    assert found.problem is not None and message in found.problem
    assert found.next_step is not None and found.next_step.startswith("Do not use this package")
    with pytest.raises(LoadFailed, match=message):
        read_package_config(folder)


def test_files_are_found_however_deep_a_pipeline_is_nested(tmp_path: Path, tiny: Path) -> None:
    stage: dict[str, Any] = {"filename": "../x.onnx"}
    for _ in range(300):
        stage = {"pipeline": [{"a": stage}]}
    config = put(config_of(tiny), "model/decoder/pipeline", [{"a": stage}])
    with pytest.raises(LoadFailed, match="outside the package"):
        read_package_config(write(tmp_path / "p", config))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["../x.onnx", "/x", "C:\\x", "model.onnx", "1", "0"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["dml", "filename", "pipeline", "a", "context_length"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
PATHS = st.sampled_from(
    [
        *("model", "search", "model/type", "model/context_length", "model/vocab_size"),
        *("model/eos_token_id", "model/decoder", "model/decoder/filename", "model/vision"),
        *("model/decoder/head_size", "model/decoder/num_hidden_layers", "model/decoder/pipeline"),
        *("model/decoder/session_options", "model/decoder/session_options/provider_options"),
        *("search/max_length", "search/chunk_size", "search/top_k", "anything"),
    ]
)


@given(st.lists(st.tuples(PATHS, JSON), max_size=4))
@settings(deadline=None)
def test_any_json_gives_an_inspection_or_an_error_in_words(
    tiny: Path, tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, Any]]
) -> None:
    config = config_of(tiny)
    for key, value in changes:
        try:
            config = put(config, key, value)
        except (TypeError, KeyError, IndexError):
            continue  # an earlier change took the place away
    folder = tmp_path_factory.getbasetemp() / "any-json"
    write(folder, config)
    found = inspect_package(Package("p", folder))
    assert 0 <= found.window.tokens < 2**31
    assert 0 <= found.kv_bytes_per_token < 2**80
    # Its files are missing, if nothing else.
    assert found.problem and found.next_step
    try:
        read_package_config(folder)
    except FimbleError as error:
        assert error.next_step


# --- companions ----------------------------------------------------------------------------


def test_damaged_companions_are_noted_and_harm_nothing(tmp_path: Path) -> None:
    folder = make_amd_package(tmp_path, "E")
    (folder / "generation_config.json").write_text('{"temperature": "hot"}', encoding="utf-8")
    (folder / "config.json").write_text("{", encoding="utf-8")
    (folder / "model_config.json").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    (folder / "tokenizer_config.json").write_bytes(b"\xff")
    found = inspect_package(Package("e", folder))
    assert found.problem is None
    assert len(found.extras.notes) == 4
    assert found.extras.notes[-1].startswith("temperature is 'hot'")


def test_companions_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    folder = make_amd_package(tmp_path, "B") / NESTED
    for name in ("generation_config.json", "config.json", "chat_template.jinja"):
        (folder / name).write_bytes(b"\xef\xbb\xbf" + (folder / name).read_bytes())
    extras = read_extras(folder)
    assert extras.notes == ()
    assert (extras.sampling.temperature, extras.architectures) == (0.7, ("Qwen2ForCausalLM",))
    template = read_chat_template(folder)
    assert template is not None and template.startswith("{% for message")


def test_nulls_are_common_beside_the_runtimes_own_file(tmp_path: Path) -> None:
    folder = make_amd_package(tmp_path, "A") / NESTED
    (folder / "generation_config.json").write_text('{"top_k": null}', encoding="utf-8")
    assert read_extras(folder).notes == ()


def test_a_template_without_end_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text("x" * (2 << 20), encoding="utf-8")
    with pytest.raises(PackageError, match="larger than"):
        read_chat_template(tmp_path)


@pytest.mark.parametrize(
    ("name", "release"),
    [
        ("Qwen2.5-7B-Instruct_rai_1.7.1_hybrid", "1.7.1"),
        ("Qwen2.5-7B-Instruct_RAI_1.7_npu_16K", "1.7"),
        ("model-rai-1.6.0", "1.6.0"),
        ("Qwen2.5-14B-Instruct_gpuep_1.0_gpu_128", ""),
        ("samurai_1.7.1_x", ""),
        ("x_rai_1", ""),
    ],
)
def test_the_release_is_in_the_name(name: str, release: str) -> None:
    assert release_in(name) == release
