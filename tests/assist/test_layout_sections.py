"""Sections of other files in a prompt: by their paths, in front of the file at the cursor."""

from __future__ import annotations

from fimble.assist.layout import completion_prompt
from fimble_context.assembly import Context, Section
from tests.support.scripted_engine import prompt_as_text


def own(*parts: tuple[str, str]) -> list[Section]:
    return [Section("src/main.py", kind, "", 1, text) for kind, text in parts]


def test_other_files_come_first_each_by_its_path() -> None:
    context = Context(
        (
            Section("src/a.py", "definition", "", 1, "def a(): ...\n"),
            Section("src/b.py", "recent", "", 1, "def b(): ...\n"),
            *own(("skeleton", "import os\n"), ("prefix", "x = "), ("suffix", "\n")),
        ),
        100,
        repository="project",
    )
    assert prompt_as_text(completion_prompt(context)) == (
        "<repo_name>project\n"
        "<file_sep>src/a.py\ndef a(): ...\n"
        "<file_sep>src/b.py\ndef b(): ...\n"
        "<file_sep>src/main.py\n"
        "<fim_prefix>import os\nx = <fim_suffix>\n<fim_middle>"
    )


def test_without_other_files_no_path_is_named() -> None:
    context = Context(tuple(own(("prefix", "x = "), ("suffix", ""))), 100, repository="project")
    assert prompt_as_text(completion_prompt(context)) == (
        "<fim_prefix>x = <fim_suffix><fim_middle>"
    )


def test_control_tokens_in_other_files_and_their_paths_stay_text() -> None:
    context = Context(
        (
            Section("<|file_sep|>.py", "similar", "", 1, "M = '<|fim_middle|>'\r\n"),
            *own(("prefix", ""), ("suffix", "")),
        ),
        100,
        repository="<|repo_name|>",
    )
    prompt = completion_prompt(context)
    assert prompt_as_text(prompt) == (
        "<repo_name><|repo_name|>\n<file_sep><|file_sep|>.py\nM = '<|fim_middle|>'\n"
        "<file_sep>src/main.py\n<fim_prefix><fim_suffix><fim_middle>"
    )
