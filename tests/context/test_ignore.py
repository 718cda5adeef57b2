"""Which files may be used: secrets, user globs, ignore files by git's own rules."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from fimble_context.workspace import Policy


def tree(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    return root


def reason(policy: Policy, path: Path) -> str | None:
    refused = policy.refusal(path)
    return refused.reason if refused else None


RULES = {
    ".gitignore": "*.log\n!keep.log\n/build/\nnested/*\n!nested/in.py\n\\#odd\nsp\\ ace.py \n"
    "**/tmp/**\n",
    "sub/.gitignore": "!special.log\ninner.py\n/only_here.py\ndir/\n[bad\n",
    "sub/deep/.gitignore": "!inner.py\n",
    ".git/info/exclude": "excluded.py\n",
}
PATHS = [
    "a.py", "a.log", "keep.log", "build/x.py", "sub/build/x.py", "nested/in.py", "nested/out.py",
    "nested/deep/in.py", "#odd", "sp ace.py", "x/tmp/y/z.py", "sub/special.log", "sub/other.log",
    "sub/inner.py", "sub/deep/inner.py", "sub/only_here.py", "sub/deep/only_here.py",
    "sub/dir/x.py", "sub/deep/dir", "excluded.py", "sub/excluded.py", "build",
]  # fmt: skip


@pytest.mark.skipif(not shutil.which("git"), reason="compares with git itself")
def test_ignore_files_mean_what_git_says(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    tree(tmp_path, RULES)
    tree(tmp_path, {path: "" for path in PATHS if path != "build"})
    asked = "\0".join(PATHS).encode()
    answer = subprocess.run(
        ["git", "check-ignore", "-z", "--stdin"], cwd=tmp_path, input=asked, capture_output=True
    )
    ignored = {part.decode() for part in answer.stdout.split(b"\0") if part}
    policy = Policy([tmp_path])
    ours = {path for path in PATHS if reason(policy, tmp_path / path) == "ignored"}
    # Asked as a file, the folder "build" is no match for "/build/".
    assert ours | {"build"} == ignored | {"build"}


def test_the_ignore_file_wins_over_gitignore(tmp_path: Path) -> None:
    tree(tmp_path, {".gitignore": "a.py\nb.py\n", ".ignore": "!a.py\nc.py\n"})
    policy = Policy([tmp_path])
    assert [reason(policy, tmp_path / name) for name in ("a.py", "b.py", "c.py")] == [
        None,
        "ignored",
        "ignored",
    ]


def test_rules_of_the_repository_around_the_folder_hold(tmp_path: Path) -> None:
    tree(tmp_path, {".git/HEAD": "", ".gitignore": "/pkg/out/\n", "pkg/.gitignore": "*.tmp\n"})
    policy = Policy([tmp_path / "pkg"])
    assert reason(policy, tmp_path / "pkg" / "out" / "a.py") == "ignored"
    assert reason(policy, tmp_path / "pkg" / "a.tmp") == "ignored"
    assert reason(policy, tmp_path / "pkg" / "a.py") is None


def test_a_changed_ignore_file_counts_at_once(tmp_path: Path) -> None:
    policy = Policy([tmp_path])
    assert reason(policy, tmp_path / "a.py") is None
    tree(tmp_path, {".gitignore": "a.py"})
    assert reason(policy, tmp_path / "a.py") == "ignored"


def test_globs_of_the_user_hold_everywhere(tmp_path: Path) -> None:
    tree(tmp_path, {"in/.gitignore": "!*.sql\n"})
    policy = Policy([tmp_path / "in"], ["*.sql", "private/", "["])
    assert reason(policy, tmp_path / "in" / "a.sql") == "excluded"
    assert reason(policy, tmp_path / "in" / "private" / "a.py") == "excluded"
    assert reason(policy, tmp_path / "elsewhere" / "a.sql") == "excluded"
    assert reason(policy, tmp_path / "elsewhere" / "private" / "a.py") == "excluded"
    assert reason(policy, tmp_path / "elsewhere" / "a.py") is None


def test_secrets_are_secret_outside_all_folders_too(tmp_path: Path) -> None:
    policy = Policy([tmp_path / "in"])
    assert reason(policy, tmp_path / "in" / ".env") == "secret"
    assert reason(policy, tmp_path / "out" / ".env.local") == "secret"
    assert reason(Policy([]), tmp_path / "id_rsa") == "secret"
    assert reason(policy, tmp_path / "out" / "a.py") is None


def test_secret_wins_over_a_pattern_that_takes_it_back_in(tmp_path: Path) -> None:
    tree(tmp_path, {".gitignore": "!.env\n"})
    assert reason(Policy([tmp_path], ["!.env"]), tmp_path / ".env") == "secret"


def test_the_innermost_of_several_folders_decides(tmp_path: Path) -> None:
    tree(tmp_path, {".gitignore": "inner/*\n", "inner/.gitignore": "b.py\n"})
    policy = Policy([tmp_path, tmp_path / "inner"])
    assert policy.folder_of(tmp_path / "inner" / "a.py") == tmp_path / "inner"
    assert reason(policy, tmp_path / "inner" / "a.py") is None
    assert reason(policy, tmp_path / "inner" / "b.py") == "ignored"


def test_links_are_judged_by_where_they_lead(tmp_path: Path) -> None:
    tree(tmp_path, {"in/.env": "", "in/a.py": "", "out/b.py": "", "in/.gitignore": "gen/\n"})
    tree(tmp_path, {"in/gen/c.py": ""})
    try:
        for name, target in {
            "secret.txt": tmp_path / "in" / ".env",
            "same.py": tmp_path / "in" / "a.py",
            "away.py": tmp_path / "out" / "b.py",
            "made.py": tmp_path / "in" / "gen" / "c.py",
        }.items():
            (tmp_path / "in" / name).symlink_to(target)
    except OSError:
        pytest.skip("this user may not make links")
    policy = Policy([tmp_path / "in"])
    names = ("secret.txt", "same.py", "away.py", "made.py")
    assert [reason(policy, tmp_path / "in" / name) for name in names] == [
        "secret",
        None,
        "outside",
        "ignored",
    ]


def test_a_refusal_names_its_rule_and_nothing_of_the_content(tmp_path: Path) -> None:
    tree(tmp_path, {".gitignore": "a.py\n"})
    policy = Policy([tmp_path])
    assert str(policy.refusal(tmp_path / "a.py")) == "ignored (.gitignore)"
    assert str(policy.refusal(tmp_path / "x" / "server.pem")) == "secret (server.pem)"


def test_an_open_document_that_is_a_private_key_is_secret(tmp_path: Path) -> None:
    policy = Policy([tmp_path])
    assert policy.refusal(tmp_path / "a.py", "x = 1\n") is None
    refused = policy.refusal(tmp_path / "a.py", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl")
    assert refused is not None
    assert refused.reason == "secret"
