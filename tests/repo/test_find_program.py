"""Which programs are found: none that a workspace may have brought."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fimble.assist.chat.git_diff import git_diff
from fimble.errors import DocumentError
from fimble.system import find_program
from fimble_context.workspace import Policy


def program(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\necho ran\n", encoding="utf-8", newline="\n")
    path.chmod(0o755)
    return path


def path_of(*folders: Path | str) -> dict[str, str]:
    return {"PATH": os.pathsep.join(map(str, folders))}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def test_known_places_come_before_the_path(tmp_path: Path, workspace: Path) -> None:
    known = program(tmp_path / "known", "tool")
    other = program(tmp_path / "bin", "tool")

    def find(*places: Path) -> Path | None:
        environ = path_of(other.parent)
        return find_program("tool", environ, places=places, outside=(workspace,))

    assert find(known.parent) == known
    assert find(tmp_path / "missing") == other


@pytest.mark.parametrize("entry", ["", ".", "bin", "./bin", "WORKSPACE", "WORKSPACE/bin"])
@pytest.mark.parametrize("platform", ["linux", "win32"])
def test_nothing_of_the_workspace_is_found(workspace: Path, entry: str, platform: str) -> None:
    for folder in (workspace, workspace / "bin"):
        program(folder, "tool")
        program(folder, "tool.exe")
    environ = path_of(entry.replace("WORKSPACE", str(workspace)))
    found = find_program("tool", environ, outside=(workspace,), platform=platform)
    assert found is None


def test_a_link_into_the_workspace_is_not_followed(tmp_path: Path, workspace: Path) -> None:
    planted = program(workspace, "tool")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tool").symlink_to(planted)
    (tmp_path / "linked").symlink_to(workspace)
    environ = path_of(tmp_path / "bin", tmp_path / "linked")
    assert find_program("tool", environ, outside=(workspace,), platform="linux") is None


def test_the_path_behind_the_workspaces_entry_still_counts(tmp_path: Path, workspace: Path) -> None:
    program(workspace, "tool.exe")
    real = program(tmp_path / "bin", "tool.exe")
    environ = path_of(workspace, f'"{real.parent}"')
    assert find_program("tool", environ, outside=(workspace,), platform="win32") == real


def test_on_windows_a_script_is_no_program_unless_it_is_asked_for(
    tmp_path: Path, workspace: Path
) -> None:
    for name in ("tool", "tool.bat", "tool.cmd", "tool.ps1"):
        program(tmp_path / "bin", name)
    environ = path_of(tmp_path / "bin")
    assert find_program("tool", environ, outside=(workspace,), platform="win32") is None
    found = find_program("tool", environ, scripts=True, platform="win32")
    assert found == tmp_path / "bin" / "tool.cmd"


def test_git_of_the_workspace_is_not_run(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / ".git").mkdir()
    # As where its environment is activated.
    program(workspace / ".venv" / "bin", "git")
    monkeypatch.setenv("PATH", str(workspace / ".venv" / "bin"))
    with pytest.raises(DocumentError, match="no git on this machine"):
        git_diff(workspace, Policy((workspace,)))
