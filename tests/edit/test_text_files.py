"""Files on disk: whatever an edit does, mark, encoding, mode and links stay."""

from __future__ import annotations

import codecs
import stat
import sys
from pathlib import Path

import pytest

from fimble.assist.edit.diff import unified_diff
from fimble.assist.edit.text_files import create_text_file, read_text_file, write_text_file
from fimble.errors import DocumentError, EditRefused


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ],
)
def test_mark_encoding_and_line_ends_stay(tmp_path: Path, mark: bytes, encoding: str) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(mark + "x = 'é😀'\r\ny = 1\nz".encode(encoding))
    file = read_text_file(path)
    assert file.text == "x = 'é😀'\r\ny = 1\nz"
    write_text_file(file, file.text.replace("y = 1", "y = 2"))
    assert path.read_bytes() == mark + "x = 'é😀'\r\ny = 2\nz".encode(encoding)


@pytest.mark.skipif(sys.platform == "win32", reason="modes and links are POSIX's")
def test_mode_and_link_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.py", tmp_path / "link.py"
    real.write_text("x = 1\n", encoding="utf-8", newline="\n")
    real.chmod(0o750)
    link.symlink_to(real)
    write_text_file(read_text_file(link), "x = 2\n")
    assert link.is_symlink() and real.read_text(encoding="utf-8") == "x = 2\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o750
    assert sorted(file.name for file in tmp_path.iterdir()) == ["link.py", "real.py"]


def test_a_file_that_was_changed_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"x = 1\n")
    file = read_text_file(path)
    path.write_bytes(b"x = 5\n")
    with pytest.raises(EditRefused, match="changed meanwhile"):
        write_text_file(file, "x = 2\n")
    assert path.read_bytes() == b"x = 5\n"


def test_a_new_file_never_replaces_one(tmp_path: Path) -> None:
    path = tmp_path / "tests" / "test_a.py"
    create_text_file(path, "a\r\n")
    assert path.read_bytes() == b"a\r\n"
    with pytest.raises(EditRefused, match="made meanwhile"):
        create_text_file(path, "b")


@pytest.mark.parametrize("data", [b"\0\1", b"# \xe9\n"])
def test_what_is_no_text_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(data)
    with pytest.raises(DocumentError):
        read_text_file(path)


def test_a_diff() -> None:
    assert unified_diff("a\nb", "a\nc", "x.py") == (
        "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n"
        "+c\n\\ No newline at end of file\n"
    )
    assert unified_diff("", "a\n", "x.py", is_new=True).startswith("--- /dev/null\n+++ b/x.py\n")
