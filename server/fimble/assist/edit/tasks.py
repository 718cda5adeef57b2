"""The tasks that an edit can have: a row each, and a template ``edit/NAME`` that says it.

What an editor calls them, and where it shows them, is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["CUSTOM", "TASKS", "EditTask", "Keeps"]

#: What an answer must leave as it is: nothing, all but documentation, all but annotations.
Keeps = Literal["", "code", "untyped"]


@dataclass(frozen=True, slots=True)
class EditTask:
    """``title`` is for a menu; ``{}`` stands for what it is about.

    ``about`` says what is taken where nothing is selected: the statements at the cursor, the
    function around it, or any definition. ``needs`` is what there has to be. ``least_lines`` is
    how long the code must be for the task to make sense.
    """

    name: str
    title: str
    help: str
    about: Literal["statements", "function", "definition"] = "function"
    needs: Literal["", "definition", "function"] = ""
    keeps: Keeps = ""
    least_lines: int = 1
    #: Kinds of other files' code that help; more only distracts a small model.
    context: tuple[str, ...] = ("definition",)
    #: Whether the prompt says what is around the code.
    headers: bool = False
    languages: tuple[str, ...] = ()


#: What the user says in words.
CUSTOM = "custom"

TASKS = {
    task.name: task
    for task in (
        EditTask(
            CUSTOM,
            "Edit {}",
            "do what the instruction says",
            about="statements",
            context=("definition", "sibling", "caller"),
            headers=True,
        ),
        EditTask("fix", "Fix {}", "correct what is wrong"),
        EditTask("simplify", "Simplify {}", "say the same with less", least_lines=2),
        EditTask("optimise", "Optimise {}", "do the same in less time or memory", least_lines=2),
        EditTask(
            "types",
            "Add types to {}",
            "annotate parameters, results and fields",
            needs="definition",
            keeps="untyped",
            languages=("python", "typescript", "tsx", "php"),
        ),
        EditTask("errors", "Add error handling to {}", "handle what can go wrong", least_lines=2),
        EditTask(
            "rename", "Rename for clarity in {}", "give local names that say more", least_lines=2
        ),
        EditTask(
            "split",
            "Split {}",
            "cut a long function into smaller ones",
            needs="function",
            least_lines=12,
        ),
        EditTask(
            "document",
            "Document {}",
            "write documentation in the file's own style",
            about="definition",
            needs="definition",
            keeps="code",
        ),
        EditTask(
            "tests",
            "Write tests for {}",
            "put tests where the project keeps them",
            headers=True,
            about="definition",
            needs="definition",
            languages=(
                "python",
                "javascript",
                "typescript",
                "tsx",
                "go",
                "rust",
                "java",
                "kotlin",
                "scala",
                "csharp",
                "php",
                "ruby",
                "c",
                "cpp",
            ),
        ),
    )
}
