"""Edit tasks done with a model, and what became of each: solved, not solved, refused, damaged.

A file is damaged where anything outside of the code in question changed, where it has more
syntax errors than before, or where its line ends, byte order mark or last line end changed. The
edit goes the whole way, through a file on disk. Code that a model wrote is run to see whether it
is right: in a process and a folder of its own, for some seconds at most.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from fimble.assist.chat.folder import FolderSources
from fimble.assist.edit.annotations import same_but_annotations
from fimble.assist.edit.service import EditOutcome, EditRequest, EditService
from fimble.assist.edit.text_files import read_text_file, write_text_file
from fimble.assist.settings import EditSettings
from fimble.assist.templates import Templates
from fimble.bench.edit_cases import EditCase
from fimble.engine.base import Engine
from fimble.errors import EditRefused
from fimble_context.assembly import Diagnostic
from fimble_context.syntax import Document, error_count

__all__ = ["EditScore", "damage_in", "is_solved", "run_edits", "summary"]

Result: TypeAlias = Literal["solved", "not solved", "refused", "damaged"]
_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class EditScore:
    """``detail`` says why something was refused, or what is damaged. ``tokens``: generated."""

    name: str
    kind: str
    task: str
    result: Result
    detail: str
    tries: int
    tokens: int
    seconds: float


class _OneFile(FolderSources):
    """A folder with a file and no index: prompts hold what the file itself has."""

    def workspace(self) -> None:
        return None


async def run_edits(
    engine: Engine,
    cases: Sequence[EditCase],
    each: Callable[[EditScore], None] = lambda score: None,
) -> list[EditScore]:
    """Every case, one after the other. Raises what the engine raises."""
    scores = []
    for case in cases:
        score = await _run(engine, case)
        scores.append(score)
        each(score)
    return scores


async def _run(engine: Engine, case: EditCase) -> EditScore:
    with tempfile.TemporaryDirectory(prefix="fimble-edit-") as folder:
        path = Path(folder).resolve() / "subject.py"
        path.write_bytes(case.mark + case.text.encode("utf-8"))
        sources = _OneFile(path.parent)
        service = EditService(lambda: engine, sources, Templates, EditSettings, name="bench")
        file = read_text_file(path)
        request = _request(case, path, file.text)
        started = time.perf_counter()
        try:
            outcome = await service.edit(request)
        except EditRefused as refused:
            seconds = time.perf_counter() - started
            changed = path.read_bytes() != file.data
            result: Result = "damaged" if changed else "refused"
            return EditScore(
                case.name, case.kind, case.task, result, refused.name, 0, 0, round(seconds, 1)
            )
        finally:
            sources.close()
        seconds = time.perf_counter() - started
        write_text_file(file, outcome.after)
        damage = damage_in(case, path.read_bytes())
        solved = not damage and is_solved(case, path, outcome)
        return EditScore(
            case.name,
            case.kind,
            case.task,
            "damaged" if damage else "solved" if solved else "not solved",
            damage,
            outcome.cost.tries,
            outcome.cost.usage.completion_tokens,
            round(seconds, 1),
        )


def _request(case: EditCase, path: Path, text: str) -> EditRequest:
    document = Document(text, path=str(path), language="python")
    diagnostics: tuple[Diagnostic, ...] = ()
    start, end = case.start, case.end
    if case.problem:
        line = document.line_of(case.problem_at)
        diagnostics = (
            Diagnostic(document.line_start(line), document.line_end(line), case.problem),
        )
    return EditRequest(document, start, end, case.task, case.instruction, diagnostics, str(path))


def damage_in(case: EditCase, data: bytes) -> str:
    """What is damaged in a file's new bytes; empty where nothing is."""
    if not data.startswith(case.mark):
        return "the byte order mark is gone"
    text = data[len(case.mark) :].decode("utf-8", "replace")
    if case.newline == "\r\n" and text.count("\n") != text.count("\r\n"):
        return "line ends changed"
    if case.newline == "\n" and text.count("\r") != case.text.count("\r"):
        return "line ends changed"
    if text.endswith("\n") != case.text.endswith("\n"):
        return "the last line end changed"
    below = case.text[case.end :]
    if not text.startswith(case.text[: case.start]):
        return "text above the code changed"
    if not text.endswith(below) or len(text) < case.start + len(below):
        return "text below the code changed"
    errors = [error_count(Document(each, path="x.py")) for each in (case.text, text)]
    if errors[1] > errors[0] or (_parses(case.text) and not _parses(text)):
        return "there are more syntax errors"
    return ""


def is_solved(case: EditCase, path: Path, outcome: EditOutcome) -> bool:
    """Whether the edited file is what was asked for."""
    text = outcome.after.replace("\r\n", "\n")
    start = case.start - case.text.count("\r\n", 0, case.start)
    below = len(case.text[case.end :].replace("\r\n", "\n"))
    code = text[start : len(text) - below]
    if case.check == "script":
        return _runs(path.parent, case.script)
    tree, original = _tree(code), _tree(case.original)
    if tree is None or original is None:
        return False
    if case.check == "restored":
        return ast.dump(tree) == ast.dump(original)
    if case.check == "typed":
        return same_but_annotations(_dedented(code), _dedented(case.original)) is True and (
            _is_typed(tree)
        )
    docstring = _docstring(tree)
    return (
        docstring is not None
        and len(docstring) >= 15
        and (ast.dump(_undocumented(tree)) == ast.dump(original))
    )


def summary(scores: Sequence[EditScore]) -> dict[str, Any]:
    """Shares of all tasks and of each kind, as plain data."""

    def shares(group: Sequence[EditScore]) -> dict[str, Any]:
        counts = {
            result.replace(" ", "_"): sum(score.result == result for score in group)
            for result in ("solved", "not solved", "refused", "damaged")
        }
        total = len(group)
        return {
            "tasks": total,
            **counts,
            "share_solved": counts["solved"] / total if total else 0.0,
            "share_refused": counts["refused"] / total if total else 0.0,
            "share_damaged": counts["damaged"] / total if total else 0.0,
        }

    kinds = dict.fromkeys(score.kind for score in scores)
    return {
        **shares(scores),
        "kinds": {kind: shares([each for each in scores if each.kind == kind]) for kind in kinds},
        "scores": [asdict(score) for score in scores],
    }


def _runs(folder: Path, script: str) -> bool:
    """Whether a script runs to its end beside the edited file."""
    whole = f"import sys\nsys.path.insert(0, {str(folder)!r})\n{script}"
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-B", "-c", whole],
            cwd=folder,
            env={
                "PATH": os.environ.get("PATH", ""),
                "SYSTEMROOT": os.environ.get("SYSTEMROOT", ""),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def _dedented(code: str) -> str:
    """Code whose first line begins without the indentation that the others have."""
    lines = code.split("\n")
    rest = [len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()]
    body = min(rest, default=4)
    # A function's body is a level deeper than the function.
    return "\n".join([lines[0], *(line[max(0, body - 4) :] for line in lines[1:])])


def _tree(code: str) -> ast.Module | None:
    try:
        return ast.parse(_dedented(code))
    except SyntaxError:
        return None


def _function(tree: ast.Module) -> ast.FunctionDef | None:
    return next((node for node in tree.body if isinstance(node, ast.FunctionDef)), None)


def _docstring(tree: ast.Module) -> str | None:
    function = _function(tree)
    return ast.get_docstring(function) if function is not None else None


def _undocumented(tree: ast.Module) -> ast.Module:
    function = _function(tree)
    if function is not None:
        function.body = function.body[1:]
    return tree


def _is_typed(tree: ast.Module) -> bool:
    """Whether every parameter has an annotation."""
    function = _function(tree)
    if function is None:
        return False
    listed = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return all(each.annotation is not None for each in listed if each.arg not in ("self", "cls"))
