"""The packaged extension of a release: the same bytes wherever it is built."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest
from release.build import build_extension

pytestmark = pytest.mark.editor

SECONDS = 1_700_000_000


def test_built_in_two_folders_it_is_the_same(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "fimble-1.2.3-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    made = []
    for folder, zone in (("one", "Asia/Tokyo"), ("another, with a longer name", "America/Lima")):
        monkeypatch.setenv("TZ", zone)
        tree = tmp_path / folder
        left = shutil.ignore_patterns("dist", "fimble.vsix")
        shutil.copytree(project, tree / "clients" / "vscode", symlinks=True, ignore=left)
        shutil.copy(project.parents[1] / "LICENSE", tree / "LICENSE")
        made.append(build_extension(tree, wheel, tree, "1.2.3", SECONDS))
    assert made[0].read_bytes() == made[1].read_bytes()
    with zipfile.ZipFile(made[0]) as vsix:
        names = set(vsix.namelist())
        assert vsix.read(f"extension/dist/server/{wheel.name}") == b"a wheel"
    unwanted = {name for name in names if name.endswith((".ts", ".map")) or "node_modules" in name}
    assert not unwanted
    assert "extension/dist/extension.js" in names
