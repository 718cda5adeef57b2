"""What each task's template says, pinned: ``FIMBLE_REWRITE=1 pytest`` writes the files anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fimble.assist.edit.service import EditService
from fimble.assist.edit.tasks import TASKS
from fimble.assist.settings import EditSettings
from fimble.assist.templates import Templates, find_templates
from fimble.errors import EditRefused
from tests.edit.places import OneFolder, request_for
from tests.support.scripted_engine import ScriptedEngine

FOLDER = Path(__file__).parent / "prompts"
SOURCE = '''"""A cart."""


class Cart:
    """Holds prices.

    Args:
        owner: whose it is
    """

    def add(self, price, times=1):
        total = 0
        for _ in range(times):
            total = total + price
            self.prices.append(price)
        if total > 100:
            print("much")
        elif total > 50:
            print("some")
        else:
            print("little")
        «return totl»
'''


async def prompt_of(task: str, folder: Path, templates: Templates, source: str = SOURCE) -> str:
    """The messages for a task, with their roles."""
    if task not in ("custom", "fix"):
        source = source.replace("«return totl»", "return «»totl")
    engine = ScriptedEngine(["none"])
    service = EditService(lambda: engine, OneFolder(folder), lambda: templates, EditSettings)
    path = folder / "cart.py"
    path.write_text(source, encoding="utf-8", newline="\n")
    request = request_for(
        source,
        task,
        path=str(path),
        instruction="use sum" if task == "custom" else "",
        problem='undefined name "totl"' if task == "fix" else "",
    )
    with pytest.raises(EditRefused):
        await service.edit(request)
    messages = engine.requests[0].messages
    return "".join(f"== {message.role}\n{message.content}\n" for message in messages)


@pytest.mark.parametrize("task", [*TASKS, "insert"])
async def test_a_prompt_is_as_it_is_written_down(task: str, tmp_path: Path) -> None:
    source = SOURCE.replace("«return totl»", "«»") if task == "insert" else SOURCE
    name = "custom" if task == "insert" else task
    found = await prompt_of(name, tmp_path, Templates(), source)
    file = FOLDER / f"{task}.txt"
    if os.environ.get("FIMBLE_REWRITE"):
        file.write_text(found, encoding="utf-8", newline="\n")
    assert found == file.read_text(encoding="utf-8")


def test_each_task_has_a_template_and_a_pinned_prompt() -> None:
    assert {file.stem for file in FOLDER.glob("*.txt")} == {*TASKS, "insert"}


async def test_a_template_of_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path / "home"))
    own = tmp_path / "home" / "templates" / "edit" / "simplify.jinja"
    own.parent.mkdir(parents=True)
    own.write_text("Shorter!\n{{ code | fenced(language) }}", encoding="utf-8", newline="\n")
    work = tmp_path / "work"
    work.mkdir()
    assert "== user\nShorter!\n```python\ndef add" in await prompt_of(
        "simplify", work, find_templates()
    )
