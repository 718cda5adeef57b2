"""Diffs for a prompt: what they hold, and that no repository can run a program through them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fimble.assist.chat import git_diff as module
from fimble.assist.chat.git_diff import git_diff
from fimble.errors import DocumentError
from fimble_context.workspace import Policy


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *identity, *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
    )
    return done.stdout.decode()


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="\n")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """``app.py`` has changed since the last commit."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    write(folder / "app.py", "a = 1\nb = 2\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    write(folder / "app.py", "a = 1\nb = 3\n")
    return folder


def diff_of(folder: Path, *, prefer_staged: bool = False) -> module.GitDiff:
    return git_diff(folder, Policy((folder,)), prefer_staged=prefer_staged)


# --- what it says ------------------------------------------------------------------------


def test_changes_since_the_last_commit(repository: Path) -> None:
    found = diff_of(repository)
    assert found.files == ("app.py",)
    assert "\n-b = 2\n+b = 3\n" in found.text
    assert found.root == repository and not found.staged and not found.left_out


def test_from_a_folder_in_it(repository: Path) -> None:
    (repository / "deep" / "er").mkdir(parents=True)
    assert git_diff(repository / "deep" / "er", Policy((repository,))).files == ("app.py",)


def test_what_is_staged_is_preferred_where_that_is_wanted(repository: Path) -> None:
    assert diff_of(repository, prefer_staged=True).files == ("app.py",)
    write(repository / "new.py", "c = 4\n")
    git(repository, "add", "new.py")
    found = diff_of(repository, prefer_staged=True)
    assert found.files == ("new.py",) and found.staged and "+c = 4" in found.text
    assert diff_of(repository).files == ("app.py", "new.py")


def test_nothing_has_changed(repository: Path) -> None:
    git(repository, "commit", "-qam", "second")
    found = diff_of(repository)
    assert (found.text, found.files, found.left_out) == ("", (), ())


def test_before_the_first_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path / "a.py", "x = 1\n")
    git(tmp_path, "add", ".")
    assert "+x = 1" in diff_of(tmp_path).text


def test_names_that_are_no_ascii_and_texts_that_are_no_utf8(repository: Path) -> None:
    write(repository / "größe 🙂.py", "x = '🙂'\n")
    (repository / "latin.py").write_bytes(b"x = '\xe4'\n")
    git(repository, "add", ".")
    found = diff_of(repository)
    assert set(found.files) == {"app.py", "größe 🙂.py", "latin.py"}
    assert "+x = '🙂'" in found.text and "+x = '\ufffd'" in found.text


def test_a_repository_with_sha256_a_worktree_and_a_split_index(
    repository: Path, tmp_path: Path
) -> None:
    git(repository, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "other")
    git(tmp_path / "tree", "update-index", "--split-index")
    write(tmp_path / "tree" / "app.py", "a = 1\n")
    assert "\n-b = 2\n" in diff_of(tmp_path / "tree").text
    newer = tmp_path / "newer"
    newer.mkdir()
    git(newer, "init", "-q", "--object-format=sha256")
    write(newer / "a.py", "x = 1\n")
    git(newer, "add", ".")
    git(newer, "commit", "-qm", "first")
    write(newer / "a.py", "x = 2\n")
    assert "\n-x = 1\n+x = 2\n" in diff_of(newer).text


def test_line_ends_are_compared_as_the_repository_says(repository: Path) -> None:
    git(repository, "config", "core.autocrlf", "true")
    (repository / "app.py").write_bytes(b"a = 1\r\nb = 3\r\n")
    assert diff_of(repository).text.count("\n-") == 1 + 1  # the header and b


# --- what is left out --------------------------------------------------------------------


def test_secret_and_ignored_files_are_left_out_and_named(repository: Path) -> None:
    write(repository / ".env", "TOKEN=old\n")
    write(repository / "private.py", "x = 1\n")
    git(repository, "add", "-f", ".env", "private.py")
    git(repository, "commit", "-qm", "second")
    write(repository / ".gitignore", "private.py\n")
    write(repository / ".env", "TOKEN=hidden\n")
    write(repository / "private.py", "x = 'hidden'\n")
    found = diff_of(repository)
    assert found.files == ("app.py",)
    assert "hidden" not in found.text
    assert {(item.path, item.reason) for item in found.left_out} == {
        (".env", "secret (.env)"),
        ("private.py", "ignored (.gitignore)"),
    }


def test_a_secret_file_does_not_come_in_as_a_renamed_one(repository: Path) -> None:
    text = "".join(f"line_{number} = {number}\n" for number in range(30))
    write(repository / ".env", text + "OLD=hidden\n")
    git(repository, "add", "-f", ".env")
    git(repository, "commit", "-qm", "second")
    git(repository, "mv", ".env", "settings.txt")
    write(repository / "settings.txt", text)
    assert "OLD" not in diff_of(repository).text


def test_keys_in_a_diff_are_masked(repository: Path) -> None:
    write(repository / "app.py", f'a = 1\nkey = "ghp_{"a1B2" * 10}"\n')
    assert "ghp_" not in diff_of(repository).text
    assert "<github-token>" in diff_of(repository).text


def test_a_huge_diff_is_cut_and_says_so(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LARGEST", 2_000)
    write(repository / "app.py", "".join(f"line_{number} = 1\n" for number in range(1_000)))
    found = diff_of(repository)
    assert len(found.text) < 2_000 and found.text.endswith("\n")
    assert "beyond" in found.left_out[0].reason


def test_more_files_than_anybody_reads(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_FILES", 2)
    for number in range(4):
        write(repository / f"n{number}.py", "x = 1\n")
    git(repository, "add", ".")
    found = diff_of(repository)
    assert len(found.files) == 2
    assert [item.reason for item in found.left_out] == ["more than 2 files have changed"] * 3


# --- no program of a repository's ever runs ----------------------------------------------


def plant(repository: Path, tmp_path: Path) -> Path:
    """A file that exists once any of the programs that the repository now names has run."""
    ran = tmp_path / "ran"
    script = tmp_path / "evil.py"
    write(script, f"open({str(ran)!r}, 'a').write('x')\n")
    run = f'"{sys.executable}" "{script}"'.replace("\\", "/")
    for name in (
        "core.fsmonitor",
        "core.pager",
        "pager.diff",
        "core.editor",
        "core.sshCommand",
        "core.askPass",
        "core.alternateRefsCommand",
        "diff.external",
        "diff.evil.textconv",
        "diff.evil.command",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "interactive.diffFilter",
        "gpg.program",
        "credential.helper",
        "remote.origin.uploadpack",
        "remote.origin.vcs",
    ):
        git(repository, "config", name, run)
    git(repository, "config", "remote.origin.url", str(tmp_path / "nowhere"))
    git(repository, "config", "remote.origin.promisor", "true")
    git(repository, "config", "filter.evil.required", "true")
    hooks = repository / "hooks"
    for hook in ("post-index-change", "fsmonitor-watchman", "pre-commit", "post-checkout"):
        write(hooks / hook, f"#!/bin/sh\nexec {run}\n")
        (hooks / hook).chmod(0o755)
    git(repository, "config", "core.hooksPath", str(hooks))
    write(repository / ".gitattributes", "*.py filter=evil diff=evil\n")
    write(repository / ".git" / "info" / "attributes", "*.py filter=evil diff=evil\n")
    ran.unlink(missing_ok=True)
    return ran


@pytest.fixture
def planted(repository: Path, tmp_path: Path) -> Path:
    return plant(repository, tmp_path)


def test_git_itself_would_run_what_is_planted(repository: Path, planted: Path) -> None:
    subprocess.run(["git", "diff", "HEAD"], cwd=repository, capture_output=True, check=False)
    assert planted.exists()


def test_nothing_that_a_configuration_names_is_run(repository: Path, planted: Path) -> None:
    found = diff_of(repository)
    assert "\n-b = 2\n+b = 3\n" in found.text
    diff_of(repository, prefer_staged=True)
    assert not planted.exists()


def test_nothing_is_run_for_a_submodule(repository: Path, tmp_path: Path) -> None:
    inner = repository / "inner"
    inner.mkdir()
    git(inner, "init", "-q", "-b", "main")
    write(inner / "x.txt", "x\n")
    git(inner, "add", ".")
    git(inner, "commit", "-qm", "first")
    commit = git(inner, "rev-parse", "HEAD").strip()
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{commit},inner")
    git(repository, "commit", "-qm", "with a submodule")
    ran = plant(repository, tmp_path)
    write(inner / ".git" / "config", (repository / ".git" / "config").read_text("utf-8"))
    write(inner / "x.txt", "y\n")
    assert "app.py" in diff_of(repository).files
    assert not ran.exists()


def test_nothing_is_fetched_for_a_missing_object(repository: Path, planted: Path) -> None:
    blob = git(repository, "rev-parse", "HEAD:app.py").strip()
    (repository / ".git" / "objects" / blob[:2] / blob[2:]).chmod(0o644)
    (repository / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    planted.unlink(missing_ok=True)
    with pytest.raises(DocumentError, match="cannot be looked at"):
        diff_of(repository)
    assert not planted.exists()


def test_a_work_tree_elsewhere_is_not_looked_at(repository: Path, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "app.py", "somebody's = 1\n")
    git(repository, "config", "core.worktree", str(tmp_path / "elsewhere"))
    assert "somebody" not in diff_of(repository).text


def test_the_repository_is_left_as_it_is(repository: Path) -> None:
    os.utime(repository / "app.py")
    inside = [file for file in (repository / ".git").rglob("*") if file.is_file()]
    before = {file: file.read_bytes() for file in inside}
    diff_of(repository)
    after = [file for file in (repository / ".git").rglob("*") if file.is_file()]
    assert before == {file: file.read_bytes() for file in after}


def test_variables_of_the_session_lead_nowhere_else(
    repository: Path, planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "none"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", f'"{sys.executable}" "{tmp_path / "evil.py"}"')
    monkeypatch.setenv("GIT_PAGER", f'"{sys.executable}" "{tmp_path / "evil.py"}"')
    assert diff_of(repository).files == ("app.py",)
    assert not planted.exists()


# --- what cannot be ----------------------------------------------------------------------


def test_no_repository_and_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = Path(tmp_path.anchor)
    with pytest.raises(DocumentError, match="no git repository"):
        git_diff(outside, Policy(()))
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(DocumentError, match="no git on this machine"):
        git_diff(tmp_path, Policy(()))


def test_a_git_that_never_ends_is_ended(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sys.platform == "win32":
        pytest.skip("a script is no program here")
    slow = tmp_path / "bin" / "git"
    write(slow, "#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(module, "_PATIENCE", 0.3)
    with pytest.raises(DocumentError, match=r"longer than 0\.3 s"):
        diff_of(repository)


def test_a_damaged_repository(repository: Path) -> None:
    write(repository / ".git" / "HEAD", "nonsense\n")
    with pytest.raises(DocumentError, match="cannot be looked at"):
        diff_of(repository)
