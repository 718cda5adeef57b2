"""An edit from its request to accepted hunks: grown, asked for, judged.

One edit of a document at a time. A refused or unusable answer changes nothing and says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fimble.assist.chat.pieces import Sources
from fimble.assist.edit.asking import Answered, Cost, Judge, ask
from fimble.assist.edit.destination import Destination, find_destination, values_for
from fimble.assist.edit.hunks import Hunk, apply_hunks, minimal_hunks, rebase_hunks
from fimble.assist.edit.merging import merged
from fimble.assist.edit.narrowing import part_for
from fimble.assist.edit.place import place_of
from fimble.assist.edit.problems import Problem, changed_document, is_repeating, syntax_problem
from fimble.assist.edit.prompt import EditPrompt, edit_prompt
from fimble.assist.edit.target import Target
from fimble.assist.edit.tasks import CUSTOM, TASKS, EditTask
from fimble.assist.edit.verdict import (
    Accepted,
    code_in,
    is_whole,
    verdict_on,
    verdict_on_code,
)
from fimble.assist.settings import EditSettings
from fimble.engine.base import Engine
from fimble.engine.protocol import FinishReason
from fimble.errors import EditRefused, UsageError
from fimble_context.assembly import Diagnostic
from fimble_context.syntax import Document, Edit, Span

if TYPE_CHECKING:
    # jinja2 takes a tenth of a second to import, which no editor's start should wait for.
    from fimble.assist.templates import Templates

__all__ = ["EditOutcome", "EditRequest", "EditService", "rebased"]


@dataclass(frozen=True, slots=True)
class EditRequest:
    """``start`` to ``end`` (code points) of ``document`` are selected; equal for a cursor.

    ``task`` is a key of ``TASKS``. ``source`` is the document's name, for "one at a time" and
    for the engine.
    """

    document: Document
    start: int
    end: int
    task: str = CUSTOM
    instruction: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class EditOutcome:
    """``hunks`` turn ``before`` into ``after``; both are whole texts.

    ``path`` is the file that they are about, ``is_new`` whether it has to be made, ``is_own``
    whether it is the document that was asked about. ``span`` is what could have changed.
    """

    task: str
    about: str
    path: str
    before: str
    after: str
    hunks: tuple[Hunk, ...]
    span: Span
    is_new: bool = False
    is_own: bool = True
    notes: tuple[str, ...] = ()
    answer: str = ""
    cost: Cost = field(default_factory=Cost)


class EditService:
    """Makes edits. ``engine``, ``templates`` and ``settings`` give those of the moment."""

    def __init__(
        self,
        engine: Callable[[], Engine],
        sources: Sources,
        templates: Callable[[], Templates],
        settings: Callable[[], EditSettings],
        *,
        name: str = "edit",
    ) -> None:
        """``name`` tells this session's edits apart from others' at the engine."""
        self._engine = engine
        self._sources = sources
        self._templates = templates
        self._settings = settings
        self._name = name
        self._under_way: dict[str, str] = {}

    async def edit(
        self, request: EditRequest, on_tokens: Callable[[int], None] = lambda tokens: None
    ) -> EditOutcome:
        """The outcome; ``on_tokens`` gets the number of tokens of the answer so far.

        Raises UsageError for what cannot be meant, EditRefused, TemplateFailed, EngineError.
        """
        task = TASKS.get(request.task)
        if task is None:
            raise UsageError(
                f"There is no task {request.task!r}.",
                next_step=f"Take one of {', '.join(TASKS)}.",
            )
        if task.name == CUSTOM and not request.instruction.strip():
            raise UsageError(
                "An edit needs an instruction or a task.",
                next_step="Say what to change, or name a task.",
            )
        # What is edited meanwhile is another text; ours stays.
        request = replace(request, document=request.document.copy())
        target = place_of(
            request.document,
            request.start,
            request.end,
            task,
            self._sources.policy,
            len(request.diagnostics),
        )
        if isinstance(target, Problem):
            raise _impossible(target)
        about = task.title.format(target.name)
        key = request.source or request.document.path
        if key in self._under_way:
            raise EditRefused(
                f"Another edit of this document is being made: {self._under_way[key]}.",
                next_step="Wait for it, or cancel it.",
                name="busy",
            )
        self._under_way[key] = about
        try:
            if task.name == "tests":
                return await self._tests(request, task, target, about, on_tokens)
            return await self._replacement(request, task, target, about, on_tokens)
        finally:
            del self._under_way[key]

    def apply(self, document: Document, start: int, end: int, code: str) -> EditOutcome:
        """Code that somebody has already, put into a place as an answer's would be.

        Where the code is less than what is there, it takes the place of what it defines.
        Raises EditRefused.
        """
        document = document.copy()
        task = TASKS[CUSTOM]
        place = place_of(document, start, end, task, None, exact=True)
        if isinstance(place, Problem):
            raise _impossible(place)
        target = part_for(place, code) if code.strip() else place
        if isinstance(target, Problem):
            raise _unapplied(target, code)
        verdict = verdict_on_code(target, task, code)
        if isinstance(verdict, Problem):
            raise _unapplied(verdict, code)
        about = f"Change {target.name}"
        return _outcome(task, about, target, verdict, document.path)

    # --- asking --------------------------------------------------------------------------

    async def _replacement(
        self,
        request: EditRequest,
        task: EditTask,
        target: Target,
        about: str,
        on_tokens: Callable[[int], None],
    ) -> EditOutcome:
        prompt = await self._prompt(request, task, target)

        def judge(answer: str, finish: FinishReason) -> Accepted | Problem:
            return verdict_on(target, task, answer, finish)

        def enough(answer: str) -> bool:
            return is_repeating(answer, target.shown) or is_whole(target, task, answer)

        answered = await self._ask(request, prompt, judge, enough, on_tokens)
        outcome = _outcome(task, about, target, answered.accepted, request.document.path)
        return replace(outcome, answer=answered.text, cost=answered.cost)

    async def _tests(
        self,
        request: EditRequest,
        task: EditTask,
        target: Target,
        about: str,
        on_tokens: Callable[[int], None],
    ) -> EditOutcome:
        found = await find_destination(request.document, self._sources)
        if isinstance(found, Problem):
            raise _impossible(found)
        values = values_for(found, target, self._sources)
        prompt = await self._prompt(request, task, target, more=values, answer_tokens=1024)
        before = found.document

        def judge(answer: str, finish: FinishReason) -> Accepted | Problem:
            return _tests_from(found, target, answer, finish)

        def enough(answer: str) -> bool:
            return is_repeating(answer)

        answered = await self._ask(request, prompt, judge, enough, on_tokens)
        accepted = answered.accepted
        return EditOutcome(
            task=task.name,
            about=about,
            path=str(found.path),
            before=before.text,
            after=apply_hunks(before.text, accepted.hunks),
            hunks=accepted.hunks,
            span=Span(0, len(before.text)),
            is_new=found.is_new,
            is_own=found.is_own,
            notes=accepted.notes,
            answer=answered.text,
            cost=answered.cost,
        )

    async def _prompt(
        self,
        request: EditRequest,
        task: EditTask,
        target: Target,
        *,
        more: dict[str, Any] | None = None,
        answer_tokens: int = 0,
    ) -> EditPrompt:
        engine = self._engine()
        return await edit_prompt(
            engine,
            await engine.model_info(),
            self._templates(),
            self._settings(),
            target,
            task,
            instruction=request.instruction,
            diagnostics=request.diagnostics,
            workspace=self._sources.workspace(),
            shown_path=self._sources.shown_path,
            more=more,
            answer_tokens=answer_tokens,
        )

    async def _ask(
        self,
        request: EditRequest,
        prompt: EditPrompt,
        judge: Judge,
        enough: Callable[[str], bool],
        on_tokens: Callable[[int], None],
    ) -> Answered:
        return await ask(
            self._engine(),
            self._templates(),
            prompt,
            judge,
            document=f"{self._name}:{request.source or request.document.path}",
            enough=enough,
            on_tokens=on_tokens,
        )


#: What to do where an edit cannot even be asked for, by the problem's name.
_NEXT_STEPS = {
    "binary": "Choose a text file.",
    "empty": "Select code, or say in words what is to be written here.",
    "language": "Say in words what to change: an instruction takes any text.",
    "no-definition": "Put the cursor into one, or say in words what to change.",
    "secret": "Select code without the key.",
    "short": "Select a longer one, or say in words what to change.",
    "size": "Move the code into a smaller file.",
    "unsaved": "Save it first.",
}


def _impossible(problem: Problem) -> EditRefused:
    step = _NEXT_STEPS.get(problem.name, "Choose another place or file.")
    return EditRefused(problem.reason, next_step=step, name=problem.name)


def _unapplied(problem: Problem, code: str) -> EditRefused:
    return EditRefused(
        f"The code was not applied. {problem.reason}",
        next_step="Select what it is for, or take of it what is right.",
        name=problem.name,
        answer=code,
    )


def rebased(outcome: EditOutcome, document: Document, edits: Sequence[Edit]) -> EditOutcome:
    """An outcome for a document that ``edits`` have changed since. Raises EditRefused.

    ``document`` is as it is now.
    """
    if not edits:
        return outcome
    hunks = rebase_hunks(outcome.hunks, outcome.before, edits)
    if hunks is not None:
        changed = changed_document(document, hunks)
        if syntax_problem(document, changed) is None:
            return replace(outcome, before=document.text, after=changed.text, hunks=hunks)
    raise EditRefused(
        "Nothing was changed. The document was edited meanwhile, where the change belongs.",
        next_step="Ask again.",
        name="moved",
        answer=outcome.answer,
    )


def _outcome(
    task: EditTask, about: str, target: Target, accepted: Accepted, path: str
) -> EditOutcome:
    before = target.document.text
    return EditOutcome(
        task=task.name,
        about=about,
        path=path,
        before=before,
        after=apply_hunks(before, accepted.hunks),
        hunks=accepted.hunks,
        span=target.span,
        notes=accepted.notes,
    )


def _tests_from(
    found: Destination, target: Target, answer: str, finish: FinishReason
) -> Accepted | Problem:
    if is_repeating(answer):
        return Problem("repetition", "The answer repeats itself.")
    if finish == "length":
        return Problem("cut", "The answer is longer than it may be, and was cut.", again=False)
    block = code_in(target, answer)
    if isinstance(block, Problem):
        return block
    text = merged(found, block.text)
    if isinstance(text, Problem):
        return text
    before = found.document
    hunks = minimal_hunks(before.text, text)
    problem = syntax_problem(before, changed_document(before, hunks))
    return problem or Accepted(text, hunks)
