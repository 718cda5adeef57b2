"""The tasks that have a slash command and a command of their own: a template each.

A task is a row here and a template ``chat/NAME``, which makes the question of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["TASKS", "Task", "help_text"]

from fimble.assist.chat.mentions import MENTIONS


@dataclass(frozen=True, slots=True)
class Task:
    """``about`` says what has to be there: code, or changes, which are looked at by itself."""

    name: str
    help: str
    about: Literal["code", "changes"]


TASKS = {
    task.name: task
    for task in (
        Task("explain", "explain code", "code"),
        Task("fix", "propose a correction", "code"),
        Task("tests", "propose tests", "code"),
        Task("document", "propose documentation in the file's style", "code"),
        Task("review", "review code or, without any, what has changed", "changes"),
        Task("commit", "propose a commit message for what is staged", "changes"),
    )
}


def help_text() -> str:
    """What may be written in a message besides words, in Markdown."""
    lines = ["Commands, at the beginning of a message:", ""]
    lines += [f"- `/{task.name}`: {task.help}" for task in TASKS.values()]
    lines += ["- `/clear`: begin anew", "- `/help`: this text", "", "Mentions, anywhere:", ""]
    lines += [f"- `{form}`: {meaning}" for form, meaning in MENTIONS.items()]
    return "\n".join([*lines, "", 'Names with blanks: `@file:"my notes.txt"`.'])
