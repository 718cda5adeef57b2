"""Whether an answer may become an edit: the text it gives, or what is wrong with it.

Knows an answer, a target and a task; asks no model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fimble.assist.edit.annotations import (
    python_imports,
    same_but_annotations,
    used_imports,
    with_annotations,
)
from fimble.assist.edit.documentation import documented
from fimble.assist.edit.fences import Block, blocks_in, fence_lines
from fimble.assist.edit.hunks import Hunk, minimal_hunks
from fimble.assist.edit.narrowing import narrowed
from fimble.assist.edit.placing import placed
from fimble.assist.edit.problems import (
    Problem,
    changed_document,
    elision_in,
    is_repeating,
    syntax_problem,
)
from fimble.assist.edit.target import Target, definitions_in
from fimble.assist.edit.tasks import EditTask
from fimble.engine.protocol import FinishReason
from fimble_context.syntax import (
    Document,
    Language,
    Symbol,
    detect,
    error_count,
    outline,
    walk,
)

__all__ = ["Accepted", "code_in", "is_whole", "verdict_on", "verdict_on_code"]

#: Languages that are written into each other's fences.
_FAMILIES = (
    frozenset({"javascript", "typescript", "tsx"}),
    frozenset({"c", "cpp"}),
    frozenset({"yaml", "json", "toml"}),
    frozenset({"html", "php", "javascript", "css"}),
    frozenset({"markdown"}),
)
#: What says nothing of a language.
_UNTOLD = frozenset({"", "text", "txt", "plain", "plaintext", "code", "diff"})


@dataclass(frozen=True, slots=True)
class Accepted:
    """``text`` is for the target's span, ``hunks`` are what differs. ``notes`` are for a person."""

    text: str
    hunks: tuple[Hunk, ...]
    notes: tuple[str, ...] = ()


def verdict_on(
    target: Target, task: EditTask, answer: str, finish: FinishReason = "stop"
) -> Accepted | Problem:
    """What an answer gives for a target, or why it gives nothing."""
    if is_repeating(answer, target.shown):
        return Problem("repetition", "The answer repeats itself.")
    block = code_in(target, answer)
    if isinstance(block, Problem):
        return block
    if task.keeps == "code":
        text = documented(target, narrowed(target, task, block.text))
        if text is not None:
            return _accepted(target, text, ())
        if finish != "length" and block.complete:
            name = target.symbol.name if target.symbol else "the code"
            return Problem("undocumented", f"The answer has no documentation of {name}.")
    if finish == "length":
        return Problem("cut", "The answer is longer than it may be, and was cut.", again=False)
    if not block.complete and block.errors > error_count(target.document):
        return Problem("unterminated", "The answer ends in the middle of its code.")
    return verdict_on_code(target, task, block.text)


def verdict_on_code(target: Target, task: EditTask, code: str) -> Accepted | Problem:
    """What code gives for a target, or why it cannot be put there."""
    if not code.strip():
        return Problem("empty", "The answer's code is empty.")
    left_out = elision_in(code, target.shown)
    if left_out is not None:
        return Problem("elision", f"The answer leaves code out: it says {left_out!r} instead.")
    code, notes = _without_known_imports(target, code)
    code = narrowed(target, task, code)
    if task.keeps == "untyped" and same_but_annotations(target.shown, code) is False:
        annotated = _annotated(target, code)
        if annotated is None:
            return Problem("changed", "The answer changes more than the type annotations.")
        code = annotated
    text = placed(target, code)
    new = set(text.splitlines()) - set(target.text.splitlines())
    if any(mark in line for mark in target.masked for line in new):
        return Problem(
            "secret", "The answer changes a line with a key in it, which it was not shown.", False
        )
    hunks = minimal_hunks(target.text, text, target.span.start)
    changed = changed_document(target.document, hunks)
    lost = _lost(target, task, changed, target.span.start + len(text))
    problem = lost or _copied(target, changed, target.span.start + len(text))
    return problem or _accepted(target, text, notes)


def code_in(target: Target, answer: str) -> Block | Problem:
    """The block of an answer that is meant for the target."""
    language = target.document.syntax_language
    inner = fence_lines(target.shown)
    blocks = blocks_in(answer, _errors_at(target), inner)
    if not blocks:
        return _bare(target, answer)
    fitting = [block for block in blocks if _is_language(block.language, language)]
    if not fitting:
        return Problem(
            "language",
            f"The answer is in {blocks[0].language}, not in "
            f"{language.name if language else 'the language of the file'}.",
        )
    name = target.symbol.name if target.symbol is not None else ""
    shown = target.shown.strip()
    # What defines the name and is no quotation of the old code; of several, the first.
    return max(
        fitting,
        key=lambda block: (bool(name) and name in block.text, block.text.strip() != shown),
    )


def is_whole(target: Target, task: EditTask, answer: str) -> bool:
    """Whether all that is needed of an answer has come, so that its rest need not be made."""
    if task.keeps == "code" and target.symbol is not None:
        block = code_in(target, answer)
        if isinstance(block, Block):
            text = block.text if block.complete else block.text.rpartition("\n")[0]
            return documented(target, narrowed(target, task, text)) is not None
    errors = _errors_at(target)
    if errors is None or fence_lines(answer) < 2:
        return False
    blocks = blocks_in(answer, errors, fence_lines(target.shown))
    most = error_count(target.document)
    return (
        bool(blocks)
        and all(block.complete and block.errors <= most for block in blocks)
        and any(block.text.strip() != target.shown.strip() for block in blocks)
    )


def _accepted(target: Target, text: str, notes: Sequence[str]) -> Accepted | Problem:
    hunks = minimal_hunks(target.text, text, target.span.start)
    if not hunks:
        return Problem("unchanged", "The answer is the old code again.")
    problem = syntax_problem(target.document, changed_document(target.document, hunks))
    return problem or Accepted(text, hunks, tuple(notes))


def _errors_at(target: Target) -> Callable[[str], int] | None:
    language = target.document.syntax_language
    if target.document.tree is None or language is None or language.id == "markdown":
        return None

    def errors(code: str) -> int:
        text = placed(target, code)
        hunks = minimal_hunks(target.text, text, target.span.start)
        return error_count(changed_document(target.document, hunks))

    return errors


def _bare(target: Target, answer: str) -> Block | Problem:
    """An answer without any fence: code if it looks like the code it was asked to change."""
    known = {line.strip() for line in target.code if len(line.strip()) > 3}
    lines = [line.strip() for line in answer.strip().splitlines()]
    errors = _errors_at(target)
    if errors is not None and lines and lines[0] in known:
        count = errors(answer)
        if count <= error_count(target.document):
            return Block("", answer.strip("\n"), True, count)
    return Problem("prose", "The answer has no code in a fence.")


def _is_language(label: str, language: Language | None) -> bool:
    if label in _UNTOLD or language is None:
        return True
    named = detect(label, f"x.{label}")
    if named is None or named.id == language.id:
        return True
    return any({named.id, language.id} <= family for family in _FAMILIES)


def _lost(target: Target, task: EditTask, changed: Document, end: int) -> Problem | None:
    """What others rely on and is gone: a definition, or how it is called."""
    if task.name in ("custom", "tests"):
        return None
    symbols = [*filter(None, [target.symbol]), *definitions_in(target.document, target.span)]
    left = [each for each in walk(outline(changed)) if target.span.start <= each.start]
    for symbol in symbols:
        found = [each for each in left if each.name == symbol.name and each.end <= end]
        if not found:
            return Problem("lost", f"The answer does not define {symbol.name}.")
        if task.name in ("fix", "types") or symbol.body_start is None:
            continue
        if _plain(symbol.signature) not in [_plain(each.signature) for each in found]:
            return Problem(
                "signature",
                f"The answer changes how {symbol.name} is called: its first line must stay "
                f"{symbol.signature!r}.",
            )
    return None


def _copied(target: Target, changed: Document, end: int) -> Problem | None:
    """Definitions in place of the target's that stand beside it already.

    Small models give what they were shown as context where they have nothing to change.
    """
    symbol = target.symbol
    if symbol is None:
        return None
    for level in _levels(outline(changed)):
        inside = [each for each in level if target.span.start <= each.start and each.end <= end]
        if not inside:
            continue
        beside = {(each.name, _plain(each.signature)) for each in level if each not in inside}
        if any(each.name == symbol.name for each in inside) or not all(
            (each.name, _plain(each.signature)) in beside for each in inside
        ):
            return None
        return Problem(
            "copied",
            f"The answer gives {inside[0].name}, which the file has already, "
            f"in place of {symbol.name}.",
        )
    return None


def _levels(symbols: Sequence[Symbol]) -> Iterator[Sequence[Symbol]]:
    """Definitions that stand side by side, the outermost first."""
    yield symbols
    for each in symbols:
        yield from _levels(each.children)


def _annotated(target: Target, code: str) -> str | None:
    """The old code with the annotations of an answer that changes more."""
    if target.symbol is None:
        return None
    return with_annotations(target.shown, code, target.symbol.name, target.document.text)


def _plain(signature: str) -> str:
    return "".join(signature.split()).replace(",)", ")").replace('"', "'")


def _without_known_imports(target: Target, code: str) -> tuple[str, list[str]]:
    """Without imports at the beginning that the file has, or that would stand in a class.

    Those that the file has not are named in a note: what is outside of the range is the user's.
    """
    language = target.document.syntax_language
    if language is None or language.id != "python" or target.symbol is None:
        return code, []
    above, rest = python_imports(code)
    if not above or not rest.strip() or python_imports(target.shown)[0]:
        return code, []
    known = {line.strip() for line in target.document.text.splitlines()}
    missing = used_imports([line for line in above if line not in known], rest)
    if missing and not target.around and not target.indent:
        return "\n".join((*missing, "", "", rest)), []
    return rest, [f"The new code needs `{line}`, which the file has not." for line in missing]
