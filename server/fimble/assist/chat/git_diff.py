"""What has changed in a git repository since its last commit, without running a program of its.

A repository's configuration can name programs that ``git diff`` runs: fsmonitor, filters, text
converters, external differs, whatever a submodule configures. So git never sees it: the diff is
made through a git folder of ours, empty but for a few harmless settings, onto the repository's
objects and index. Nothing is written to the repository, and nothing is fetched.

Files that a policy refuses are not in the diff; which ones is said.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fimble import system
from fimble.errors import DocumentError
from fimble_context.assembly import LeftOut
from fimble_context.workspace import Policy, mask_secrets

__all__ = ["GitDiff", "git_diff"]

#: The longest that all calls of git together may take, in seconds.
_PATIENCE = 8.0
#: More of a diff is of no use to a prompt, in bytes.
_LARGEST = 2_000_000
_MOST_FILES = 300
_EMPTY_TREES = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
#: Settings of a repository that change what a diff says, and what each may be.
_HARMLESS = {
    "core.autocrlf": "true|false|input",
    "core.eol": "lf|crlf|native",
    "core.filemode": "true|false",
    "core.ignorecase": "true|false",
    "core.precomposeunicode": "true|false",
    "core.symlinks": "true|false",
}
_DIFF = (
    "diff",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-renames",
    "--ignore-submodules=all",
)


@dataclass(frozen=True, slots=True)
class GitDiff:
    """``text`` is a unified diff, empty where nothing has changed; ``files`` are in it.

    Paths are relative to ``root``, the repository's folder, with forward slashes. ``staged``
    says that it is of what was added for the next commit. Keys are masked.
    """

    root: Path
    text: str
    files: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    staged: bool = False


def git_diff(folder: Path, policy: Policy, *, prefer_staged: bool = False) -> GitDiff:
    """All changes since the last commit in the repository around ``folder``.

    ``prefer_staged``: only those that were added for the next commit, if there are any. New
    files count once they are added. Blocks for seconds at worst. Raises DocumentError.
    """
    return _Git(folder).diff(policy, prefer_staged)


class _Git:
    """Calls of git within one time limit, for the repository around a folder."""

    def __init__(self, folder: Path) -> None:
        folder = folder.absolute()
        around = (folder, *folder.parents)
        root = next((each for each in around if (each / ".git").exists()), None)
        if root is None:
            raise DocumentError(f"{folder} is in no git repository.")
        program = system.find_program("git", outside=(root,))
        if program is None:
            raise DocumentError("There is no git on this machine.", next_step="Install git.")
        self._program = program
        self._deadline = time.monotonic() + _PATIENCE
        self._root = root

    def diff(self, policy: Policy, prefer_staged: bool) -> GitDiff:
        with tempfile.TemporaryDirectory(prefix="fimble-git-") as name:
            private, commit, environ = self._prepare(Path(name))
            base = (f"--git-dir={private}", f"--work-tree={self._root}", *_DIFF)
            cached = ("--cached",) if prefer_staged else ()
            changed = self._names([*base, *cached, commit], environ)
            if prefer_staged and not changed:
                cached = ()
                changed = self._names([*base, commit], environ)
            files, left_out = self._allowed(changed, policy)
            text = ""
            if files:
                text = self._run([*base, *cached, commit, "--", *files], environ).decode(
                    "utf-8", "replace"
                )
        if len(text) >= _LARGEST:
            text = text[: text.rfind("\n") + 1]
            left_out.append(LeftOut("", f"what is beyond {_LARGEST // 1_000_000} MB of the diff"))
        return GitDiff(self._root, mask_secrets(text), tuple(files), tuple(left_out), bool(cached))

    def _prepare(self, private: Path) -> tuple[Path, str, dict[str, str]]:
        """A git folder of ours onto the repository's objects, its last commit, an environment."""
        # Where things are: this reads the repository's configuration, and runs nothing of it.
        wanted = [part for name in ("objects", "index", "config") for part in ("--git-path", name)]
        asked = self._run(
            ["rev-parse", "--path-format=absolute", "--show-object-format", *wanted],
            _environment(),
        )
        kind, objects, index, config = asked.decode("utf-8", "replace").splitlines()[:4]
        if kind not in _EMPTY_TREES:
            raise self._failed(f"its object format {kind} is unknown")
        commit = self._head() or _EMPTY_TREES[kind]
        (private / "refs").mkdir()
        (private / "HEAD").write_text("ref: refs/heads/none\n", encoding="ascii", newline="\n")
        settings = self._harmless(config)
        version = 0 if kind == "sha1" else 1
        lines = ["[core]", f"repositoryformatversion = {version}", "bare = false", *settings]
        if version:
            lines += ["[extensions]", f"objectformat = {kind}"]
        text = "".join(f"{line}\n" for line in lines)
        (private / "config").write_text(text, encoding="utf-8", newline="\n")
        self._copy_index(Path(index), private)
        environ = _environment(
            GIT_OBJECT_DIRECTORY=objects,
            GIT_CONFIG_GLOBAL=os.devnull,
            GIT_CONFIG_NOSYSTEM="1",
            GIT_ATTR_NOSYSTEM="1",
        )
        return private, commit, environ

    def _copy_index(self, index: Path, private: Path) -> None:
        """The index and, of a split one, its other half: git looks for that beside it.

        With its time of change: a file that changed at the same moment must be looked into.
        """
        if index.is_file():
            shutil.copy2(index, private / "index")
        for shared in index.parent.glob("sharedindex.*"):
            shutil.copy2(shared, private / shared.name)

    def _head(self) -> str:
        """The last commit's id; empty before the first one."""
        arguments = ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]
        found = self._run(arguments, _environment(), may_fail=True).decode("ascii", "replace")
        return found.strip() if re.fullmatch(r"[0-9a-f]{40,64}\s*", found) else ""

    def _harmless(self, config: str) -> list[str]:
        """The few settings of the repository's that are taken over, as lines of a section."""
        names = "|".join(name.replace(".", r"\.") for name in _HARMLESS)
        arguments = ["config", "--file", config, "--no-includes", "--get-regexp", f"^({names})$"]
        found = self._run(arguments, _environment(), may_fail=True)
        lines = []
        for line in found.decode("utf-8", "replace").splitlines():
            name, _, value = line.partition(" ")
            if re.fullmatch(_HARMLESS.get(name, ""), value):
                lines.append(f"{name.partition('.')[2]} = {value}")
        return lines

    def _names(self, arguments: Sequence[str], environ: Mapping[str, str]) -> list[str]:
        found = self._run([*arguments, "--name-only", "-z"], environ)
        return [name for name in found.decode("utf-8", "surrogateescape").split("\0") if name]

    def _allowed(self, changed: Sequence[str], policy: Policy) -> tuple[list[str], list[LeftOut]]:
        files: list[str] = []
        left_out: list[LeftOut] = []
        for name in changed:
            refused = policy.refusal(self._root / name)
            if refused is not None:
                left_out.append(LeftOut(name, str(refused)))
            elif len(files) == _MOST_FILES:
                left_out.append(LeftOut(name, f"more than {_MOST_FILES} files have changed"))
            else:
                files.append(name)
        return files, left_out

    def _run(
        self, arguments: Sequence[str], environ: Mapping[str, str], *, may_fail: bool = False
    ) -> bytes:
        """What git writes, up to ``_LARGEST`` bytes."""
        with tempfile.TemporaryFile() as output:
            try:
                done = subprocess.run(
                    [str(self._program), "--no-pager", "--literal-pathspecs", *arguments],
                    env=dict(environ),
                    cwd=self._root,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.PIPE,
                    timeout=max(0.1, self._deadline - time.monotonic()),
                    creationflags=system.NO_WINDOW,
                    check=False,
                )
            except subprocess.TimeoutExpired as error:
                raise self._failed(f"git took longer than {_PATIENCE:g} s") from error
            except OSError as error:
                raise self._failed(error.strerror or type(error).__name__) from error
            output.seek(0)
            data = output.read(_LARGEST)
        if done.returncode != 0 and not may_fail:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise self._failed(said[0] if said else f"git ended with code {done.returncode}")
        return data

    def _failed(self, cause: str) -> DocumentError:
        return DocumentError(
            f"The changes in {self._root} cannot be looked at: {cause}.",
            next_step="`git diff` in that folder says more.",
        )


def _environment(**more: str) -> dict[str, str]:
    """This process's, without what git takes from it, and with nothing that could ask or fetch."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return plain | {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "LC_ALL": "C",
        **more,
    }
