"""A prompt's beginning stays as it was from one keystroke to the next."""

from __future__ import annotations

from pathlib import Path

import pytest

from fimble_context.assembly import Context, Section
from fimble_context.syntax import Document, Edit
from tests.context.workspace_fixture import OWN, Counter, Fixture, Opened, as_prompt, opened
from tests.support.waiting import until

HELPERS = "".join(
    f"def helper_{number}(first: int, second: str) -> str:\n"
    f'    """Does thing number {number}."""\n'
    f"    return second * first\n\n\n"
    for number in range(40)
)
BODY = "".join(
    f"    value_{number} = helper_{number}({number}, 'x')\n    print(value_{number})\n"
    for number in range(40)
)
IMPORTS = ", ".join(f"helper_{number}" for number in range(40))
FIXTURE = Fixture.parse(
    f"=== file helpers.py\n{HELPERS}"
    "=== file other.py\ndef apart(number: int) -> int:\n    return number\n"
    f"=== cursor main.py\nfrom helpers import {IMPORTS}\n\n\ndef main() -> None:\n{BODY}    │\n"
    "\n\ndef next_one() -> None:\n    helper_1(1, 'a')\n"
)


def others(context: Context) -> list[Section]:
    return [item for item in context.sections if item.kind not in OWN]


def beginning(context: Context) -> str:
    """The prompt up to where the prefix begins."""
    prefix = next(item for item in context.sections if item.kind == "prefix")
    prompt = as_prompt(context)
    return prompt[: prompt.rindex(prefix.text)] if prefix.text else prompt


def kept_of(before: str, after: str) -> int:
    """How many characters two prompts have in common at their beginning."""
    pairs = zip(before, after, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(before), len(after)))


@pytest.mark.parametrize("budget", [800, 1500, 6000])
def test_typing_thirty_characters_changes_nothing_of_other_files(
    budget: int, tmp_path: Path
) -> None:
    with opened(FIXTURE, tmp_path) as case:
        first = case.assemble(budget)
        assert others(first)
        for character in "result = helper_7(12, 'twelve')":
            case.type(character)
            context = case.assemble(budget)
            assert others(context) == others(first)
            assert context.tokens <= budget


@pytest.mark.parametrize("budget", [800, 1500, 6000])
def test_typing_only_adds_to_the_prefix_for_many_characters(budget: int, tmp_path: Path) -> None:
    with opened(FIXTURE, tmp_path) as case:
        prompt = as_prompt(case.assemble(budget))
        anew = 0
        for character in "result = helper_7(12, 'twelve')":
            before = prompt
            case.type(character)
            context = case.assemble(budget)
            prompt = as_prompt(context)
            prefix = next(item for item in context.sections if item.kind == "prefix")
            end = prompt.index(prefix.text) + len(prefix.text)
            anew += kept_of(before, prompt) < end - 1
        # Where there is no suffix that could yield, the prefix loses its first lines, once.
        assert anew <= 1


def test_a_prompt_of_the_same_place_is_the_same(tmp_path: Path) -> None:
    with opened(FIXTURE, tmp_path / "one") as one, opened(FIXTURE, tmp_path / "two") as two:
        assert one.assemble(600) == two.assemble(600)
        assert one.assemble(600) == one.assemble(600)


def test_a_prompt_costs_one_count(tmp_path: Path) -> None:
    with opened(FIXTURE, tmp_path) as case:
        for text in ("", "x", " = 1\n", "    y"):
            case.type(text) if text else None
            counter = Counter()
            case.assemble(6000, counter)
            assert counter.calls == 1


def test_a_new_line_in_the_same_function_keeps_the_other_files(tmp_path: Path) -> None:
    with opened(FIXTURE, tmp_path) as case:
        first = case.assemble(700)
        case.type("one = helper_39(1, 'a')\n    two = one\n    ")
        assert others(case.assemble(700)) == others(first)


def test_a_name_from_a_file_not_shown_yet_comes_after_those_that_are(tmp_path: Path) -> None:
    with opened(FIXTURE, tmp_path) as case:
        first = case.assemble(2000)
        added = Edit(0, 0, "from other import apart\n")
        case.document.apply(added)
        case.offset += len(added.text)
        case.workspace.changed(case.path, case.document, [added])
        assert others(case.assemble(2000)) == others(first)
        case.type("apart(1)")
        assert others(case.assemble(2000)) == others(first)
        case.type("\n    ")
        second = others(case.assemble(2000))
        assert [item.path for item in second] == ["helpers.py", "other.py"]


def test_another_function_may_change_them(tmp_path: Path) -> None:
    with opened(FIXTURE, tmp_path) as case:
        first = case.assemble(700)
        case.offset = case.document.text.index("helper_1(1, 'a')")
        second = case.assemble(700)
        assert [item.reason for item in others(first)] != [item.reason for item in others(second)]


def test_an_edit_of_a_file_that_is_shown_is_seen_at_once(tmp_path: Path) -> None:
    with opened(FIXTURE, tmp_path) as case:
        assert "helper_39" in as_prompt(case.assemble(6000))
        path = case.path.with_name("helpers.py")
        path.write_text("def helper_39(changed: bytes) -> bytes: ...\n", encoding="utf-8")
        case.workspace.file_changed(path)
        assert case.workspace.index.wait(
            30, until=lambda: _signatures(case, path) == ["def helper_39(changed: bytes) -> bytes:"]
        )
        assert "changed: bytes" in as_prompt(case.assemble(6000))


@pytest.mark.parametrize("where", ["on disk", "in the editor"])
def test_what_is_asked_while_a_change_is_still_to_be_read_does_not_keep_the_old(
    where: str, tmp_path: Path
) -> None:
    changed = "def helper_39(changed: bytes) -> bytes: ...\n"
    with opened(FIXTURE, tmp_path) as case:
        path, index = case.path.with_name("helpers.py"), case.workspace.index
        document = Document(HELPERS, path="helpers.py")
        if where == "in the editor":
            case.workspace.opened(path, document)
            until(lambda: not index.is_behind(None))
        assert "helper_39" in as_prompt(case.assemble(6000))
        if where == "on disk":
            path.write_text(changed, encoding="utf-8")
            case.workspace.file_changed(path)
        else:
            edit = Edit(0, len(HELPERS), changed)
            document.apply(edit)
            case.workspace.changed(path, document, [edit])
        case.assemble(6000)
        until(lambda: not index.is_behind(None))
        assert "helper_39(changed: bytes)" in as_prompt(case.assemble(6000))


def _signatures(case: Opened, path: Path) -> list[str]:
    return [item.signature for item in case.workspace.index.definitions_in(path)]


def test_an_edit_of_another_open_document_is_recent_work(tmp_path: Path) -> None:
    with opened(FIXTURE, tmp_path) as case:
        document = case.documents["main.py"]
        place = document.text.index("def next_one")
        edit = Edit(place, place, "def brand_new() -> int:\n    return 77\n\n\n")
        document.apply(edit)
        case.workspace.changed(case.path, document, [edit])
        other = Fixture.parse("=== cursor other.py\ndef apart(number: int) -> int:\n    │\n")
        text = other.files[0][2].replace("│", "")
        opened_other = Document(text, path="other.py")
        path = case.path.with_name("other.py")
        case.workspace.opened(path, opened_other)
        context = case.workspace.assemble(
            opened_other, len(text) - 1, path=path, budget=500, count_tokens=Counter()
        )
        recent = [item for item in context.sections if item.kind == "recent"]
        assert [item.path for item in recent] == ["main.py"]
        assert "return 77" in recent[0].text
