"""Damaged, foreign and malicious GGUF files: each a clear ImportFailed, cheaply found."""

from __future__ import annotations

import dataclasses
import shutil
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fimble.errors import ImportFailed
from fimble.models.gguf_import import import_gguf
from tests.support.mixed_gguf import make_mixed_gguf, mixed_architecture
from tests.support.tiny import tiny_tokenizer
from tests.support.tiny_gguf import make_tiny_gguf

HUGE = 1 << 62


# A file by hand: each part is bytes, so that a test can make any of them a lie.


def text(value: str | bytes, *, length: int | None = None) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw) if length is None else length) + raw


def entry(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def array(key: str, kind: int, count: int, values: bytes = b"") -> bytes:
    return entry(key, 9, struct.pack("<IQ", kind, count) + values)


def tensor(name: str, shape: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    return (
        text(name)
        + struct.pack("<I", len(shape))
        + b"".join(struct.pack("<Q", n) for n in shape)
        + struct.pack("<IQ", kind, offset)
    )


def gguf_bytes(
    *parts: bytes,
    magic: bytes = b"GGUF",
    version: int = 3,
    entries: int = 0,
    tensors: int = 0,
    data: int = 256,
) -> bytes:
    return magic + struct.pack("<IQQ", version, tensors, entries) + b"".join(parts) + bytes(data)


BROKEN = {
    "empty": (b"", "is empty"),
    "four bytes": (b"GGUF", "ends within its version"),
    "another format": (gguf_bytes(magic=b"PK\x03\x04"), "does not begin with GGUF"),
    "a pointer file": (b"version https://git-lfs.github.com/spec/v1\n", "does not begin"),
    "future version": (gguf_bytes(version=9), "version 9"),
    "big-endian": (gguf_bytes(version=3 << 24), "big-endian"),
    "tensor count": (gguf_bytes(tensors=HUGE), "claims to have .* tensors"),
    "entry count": (gguf_bytes(entries=HUGE), "claims to have .* entries"),
    "more entries than bytes": (gguf_bytes(entries=60_000, data=100), "ends within|unknown|twice"),
    "key length": (gguf_bytes(text("k", length=HUGE), entries=1), "key is .* bytes long"),
    "string length": (
        gguf_bytes(entry("k", 8, text("v", length=HUGE)), entries=1),
        "ends within metadata 'k'",
    ),
    "string of all bits": (
        gguf_bytes(entry("k", 8, text("v", length=(1 << 64) - 1)), entries=1),
        "ends within metadata 'k'",
    ),
    "not UTF-8": (gguf_bytes(entry("k", 8, text(b"\xff\xfe")), entries=1), "not UTF-8"),
    "value type": (gguf_bytes(entry("k", 77, b""), entries=1), "unknown type, 77"),
    "array type": (gguf_bytes(array("k", 77, 1), entries=1), "array of an unknown type, 77"),
    "array of arrays": (gguf_bytes(array("k", 9, HUGE), entries=1), "array of an unknown type, 9"),
    "array length": (gguf_bytes(array("k", 4, HUGE), entries=1), "ends within metadata 'k'"),
    "strings in an array": (gguf_bytes(array("k", 8, HUGE), entries=1), "claims to have"),
    "strings that overflow": (
        gguf_bytes(array("k", 8, (1 << 61) + 1), entries=1),
        "claims to have",
    ),
    "key twice": (
        gguf_bytes(entry("k", 0, b"\1"), entry("k", 0, b"\1"), entries=2),
        "'k' is there twice",
    ),
    "no dimensions": (gguf_bytes(tensor("t", ()), tensors=1), "0 dimensions"),
    "many dimensions": (gguf_bytes(tensor("t", (1,) * 5), tensors=1), "5 dimensions"),
    "dimension of 0": (gguf_bytes(tensor("t", (0, 4)), tensors=1), "does not allow"),
    "dimension overflow": (gguf_bytes(tensor("t", (HUGE, HUGE)), tensors=1), "ends at byte"),
    "half a block": (gguf_bytes(tensor("t", (31,), kind=8), tensors=1), "does not allow"),
    "tensor type": (gguf_bytes(tensor("t", (32,), kind=199), tensors=1), "of type 199"),
    "tensor twice": (gguf_bytes(tensor("t", (1,)), tensor("t", (1,)), tensors=2), "twice"),
    "offset outside": (gguf_bytes(tensor("t", (4,), offset=1 << 40), tensors=1), "ends at byte"),
    "offset that wraps": (
        gguf_bytes(tensor("t", (4,), offset=(1 << 64) - 32), tensors=1),
        "ends at byte",
    ),
    "beyond the end": (gguf_bytes(tensor("t", (4096,)), tensors=1), "ends at byte"),
    "not aligned": (gguf_bytes(tensor("t", (4,), offset=5), tensors=1), "not aligned"),
    "overlap": (
        gguf_bytes(tensor("t", (16,)), tensor("u", (16,), offset=32), tensors=2),
        "overlaps",
    ),
    "alignment of 0": (
        gguf_bytes(entry("general.alignment", 4, struct.pack("<I", 0)), entries=1),
        "alignment is 0",
    ),
    "alignment of 24": (
        gguf_bytes(entry("general.alignment", 4, struct.pack("<I", 24)), entries=1),
        "no power of two",
    ),
    "alignment in words": (
        gguf_bytes(entry("general.alignment", 8, text("../../etc")), entries=1),
        "no power of two",
    ),
    "nothing in it": (gguf_bytes(), "architecture is 'missing'"),
}


@pytest.mark.parametrize(("content", "says"), BROKEN.values(), ids=BROKEN)
def test_broken_header(tmp_path: Path, content: bytes, says: str) -> None:
    source = tmp_path / "bad.gguf"
    source.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(ImportFailed, match=says) as caught:
            import_gguf(source, tmp_path / "package")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert str(source) in caught.value.message
    assert caught.value.next_step
    assert peak < 10_000_000
    assert not (tmp_path / "package").exists()


def _set(key: str, kind: gguf.GGUFValueType, value: object) -> Callable[[gguf.GGUFWriter], None]:
    """Overrides an entry that the writer already has."""

    def edit(writer: gguf.GGUFWriter) -> None:
        writer.kv_data[0].pop(key, None)
        writer.add_key_value(key, value, kind)

    return edit


_INT, _FLOAT = gguf.GGUFValueType.UINT32, gguf.GGUFValueType.FLOAT32
_TEXT = gguf.GGUFValueType.STRING
_TOKENS = tiny_tokenizer(context_length=512)

UNSUITABLE: dict[str, tuple[dict[str, Any], str]] = {
    "architecture": ({"architecture_name": "llama"}, "architecture is 'llama'"),
    "tokenizer": ({"tokenizer_model": "llama"}, "tokenizer is 'llama'"),
    "pre-tokenizer": ({"pre_tokenizer": "llama-bpe"}, "'llama-bpe'"),
    "scaled rotary": (
        {"edit": _set("qwen2.rope.scaling.type", _TEXT, "yarn")},
        "rotary embedding is scaled",
    ),
    "missing tensor": ({"omit": "blk.1.ffn_up.weight"}, "'blk.1.ffn_up.weight' is missing"),
    "missing norm": ({"omit": "output_norm.weight"}, "'output_norm.weight' is missing"),
    "no layers": ({"edit": _set("qwen2.block_count", _INT, 0)}, "'qwen2.block_count' is 0"),
    "layers without end": (
        {"edit": _set("qwen2.block_count", _INT, 0xFFFFFFFF)},
        "'qwen2.block_count' is 4294967295",
    ),
    "layers in words": (
        {"edit": _set("qwen2.block_count", _TEXT, "two")},
        "'qwen2.block_count' is 'two'",
    ),
    "wrong width": ({"edit": _set("qwen2.embedding_length", _INT, 512)}, "has the shape"),
    "width of no block": ({"edit": _set("qwen2.feed_forward_length", _INT, 250)}, "no multiple"),
    "odd heads": ({"edit": _set("qwen2.attention.head_count", _INT, 7)}, "do not fit"),
    "more key heads": ({"edit": _set("qwen2.attention.head_count_kv", _INT, 9)}, "head_count_kv"),
    "endless context": (
        {"edit": _set("qwen2.context_length", _INT, 1 << 30)},
        "'qwen2.context_length' is",
    ),
    "rotary base": ({"edit": _set("qwen2.rope.freq_base", _FLOAT, float("nan"))}, "freq_base"),
    "end token outside": (
        {"edit": _set("tokenizer.ggml.eos_token_id", _INT, 99_999)},
        "eos_token_id' is 99999",
    ),
    "token types": (
        {"tokenizer": dataclasses.replace(_TOKENS, types=list(_TOKENS.types)[:-1])},
        "512 tokens and 511 token types",
    ),
    "merge of nothing": (
        {"tokenizer": dataclasses.replace(_TOKENS, merges=["nonsense word"])},
        "tokenizer .* makes no sense.*'nonsense'",
    ),
    "merge of one": (
        {"tokenizer": dataclasses.replace(_TOKENS, merges=["nonsense"])},
        "tokenizer .* makes no sense",
    ),
    "token twice": (
        {"tokenizer": dataclasses.replace(_TOKENS, tokens=["a", *list(_TOKENS.tokens)[1:]])},
        "'a' has two ids",
    ),
}


@pytest.mark.parametrize(("changes", "says"), UNSUITABLE.values(), ids=UNSUITABLE)
def test_sound_file_that_does_not_suit(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    source = make_mixed_gguf(tmp_path / "bad.gguf", **changes)
    with pytest.raises(ImportFailed, match=says) as caught:
        import_gguf(source, tmp_path / "package")
    assert caught.value.next_step
    assert not (tmp_path / "package" / "genai_config.json").exists()


def test_weights_that_are_no_numbers(tmp_path: Path) -> None:
    source = make_mixed_gguf(tmp_path / "bad.gguf")
    name = "blk.1.ffn_norm.weight"
    place = next(t for t in gguf.GGUFReader(source).tensors if t.name == name).data_offset
    with source.open("r+b") as file:
        file.seek(place)
        file.write(struct.pack("<f", float("nan")))
    with pytest.raises(ImportFailed, match="what cannot be a weight"):
        import_gguf(source, tmp_path / "package")
    assert not (tmp_path / "package" / "genai_config.json").exists()


def test_missing_file_and_folder(tmp_path: Path) -> None:
    for source in (tmp_path / "none.gguf", tmp_path):
        with pytest.raises(ImportFailed, match="cannot be read"):
            import_gguf(source, tmp_path / "package")


def test_unknown_precision(tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match="int3"):
        import_gguf(tmp_path / "x.gguf", tmp_path / "package", precision="int3")  # type: ignore[arg-type]


def test_names_never_become_paths(tmp_path: Path) -> None:
    """Neither the model's name nor anything else in the metadata says where to write."""

    def edit(writer: gguf.GGUFWriter) -> None:
        writer.kv_data[0]["general.name"].value = "../../escaped"
        writer.add_key_value("general.license", "/etc/passwd", _TEXT)
        writer.add_tensor("../../../tensor", np.zeros(32, dtype=np.float32))

    home = tmp_path / "a" / "b" / "c"
    home.mkdir(parents=True)
    source = make_mixed_gguf(home / "x.gguf", edit=edit)
    before = set(tmp_path.rglob("*"))
    import_gguf(source, home / "package")
    new = set(tmp_path.rglob("*")) - before
    assert all(path == home / "package" or path.parent == home / "package" for path in new)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    source = tmp_path_factory.mktemp("sound") / "x.gguf"
    return make_tiny_gguf(source).read_bytes()


def _try(folder: Path, content: bytes) -> None:
    """Import; anything but success or ImportFailed propagates and fails the test."""
    source, target = folder / "hurt.gguf", folder / "package"
    source.write_bytes(content)
    shutil.rmtree(target, ignore_errors=True)
    try:
        import_gguf(source, target)
    except ImportFailed as error:
        assert "hurt.gguf" in str(error)
        assert not (target / "genai_config.json").exists()


_FEW = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@_FEW
@given(data=st.data())
def test_cut_anywhere(tmp_path: Path, sound: bytes, data: st.DataObject) -> None:
    end = data.draw(st.integers(0, len(sound) - 1))
    source = tmp_path / "hurt.gguf"
    source.write_bytes(sound[:end])
    with pytest.raises(ImportFailed):
        import_gguf(source, tmp_path / "package")


@_FEW
@given(data=st.data())
def test_bytes_changed_anywhere(tmp_path: Path, sound: bytes, data: st.DataObject) -> None:
    content = bytearray(sound)
    header = 22_000  # most of the damage where most of the meaning is
    places = st.one_of(st.integers(0, header), st.integers(0, len(sound) - 1))
    changes = st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=8)
    for place, value in data.draw(changes):
        content[place] = value
    _try(tmp_path, bytes(content))


@_FEW
@given(data=st.data())
def test_numbers_made_enormous(tmp_path: Path, sound: bytes, data: st.DataObject) -> None:
    """Eight bytes of ones, or a power of two, over any place of the header."""
    content = bytearray(sound)
    place = data.draw(st.integers(4, 3000))
    value = data.draw(st.one_of(st.just((1 << 64) - 1), st.integers(0, 63).map(lambda n: 1 << n)))
    content[place : place + 8] = value.to_bytes(8, "little")
    _try(tmp_path, bytes(content))


def test_the_mixed_files_numbers_fit_its_architecture(tmp_path: Path) -> None:
    """Guards the tests above: unchanged, the file imports."""
    source = make_mixed_gguf(tmp_path / "x.gguf", arch=mixed_architecture())
    import_gguf(source, tmp_path / "package")
    assert (tmp_path / "package" / "genai_config.json").exists()
