"""Templates: which file is taken, what one may say, and what stops one that does too much."""

from __future__ import annotations

from pathlib import Path

import pytest

from fimble import system, template_bounds
from fimble.assist import templates as module
from fimble.assist.fences import fenced
from fimble.assist.templates import Templates, find_templates
from fimble.errors import TemplateFailed


def overriding(folder: Path, text: str, name: str = "chat/system") -> Path:
    file = folder / f"{name}.jinja"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="\n")
    return folder


def rendered(tmp_path: Path, source: str, **values: object) -> str:
    return Templates(overriding(tmp_path / "own", source)).render("chat/system", values)


# --- which template ----------------------------------------------------------------------


def test_ours_is_used_where_nobody_has_another(tmp_path: Path) -> None:
    assert Templates().render("chat/system", {}).startswith("You are fimble")
    assert Templates(tmp_path / "none").render("chat/system", {}).startswith("You are fimble")


def test_the_users_own_template_wins_and_may_appear_at_any_time(tmp_path: Path) -> None:
    templates = Templates(tmp_path)
    assert templates.render("chat/system", {}).startswith("You are fimble")
    overriding(tmp_path, "Be {{ mood }}.\n")
    assert templates.render("chat/system", {"mood": "brief"}) == "Be brief."
    overriding(tmp_path, "Be kind.")
    assert templates.render("chat/system", {}) == "Be kind."
    (tmp_path / "chat" / "system.jinja").unlink()
    assert templates.render("chat/system", {}).startswith("You are fimble")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_workspace_brings_templates_only_if_the_user_lists_it(home: Path, tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    overriding(workspace / ".fimble" / "templates", "Theirs.")
    assert find_templates([workspace]).render("chat/system", {}).startswith("You are fimble")
    listed = system.templates_dir() / "workspaces.txt"
    listed.parent.mkdir(parents=True)
    listed.write_text(f"# trusted\n\n{tmp_path / 'other'}\n", encoding="utf-8", newline="\n")
    assert find_templates([workspace]).render("chat/system", {}).startswith("You are fimble")
    listed.write_text(f"{workspace}\n", encoding="utf-8", newline="\n")
    assert find_templates([workspace]).render("chat/system", {}) == "Theirs."


def test_a_workspaces_template_is_no_link_to_elsewhere(home: Path, tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    folder = workspace / ".fimble" / "templates" / "chat"
    folder.mkdir(parents=True)
    (tmp_path / "private.txt").write_text("private", encoding="utf-8", newline="\n")
    try:
        (folder / "system.jinja").symlink_to(tmp_path / "private.txt")
    except OSError:
        pytest.skip("links cannot be made here")
    listed = system.templates_dir() / "workspaces.txt"
    listed.parent.mkdir(parents=True)
    listed.write_text(str(workspace), encoding="utf-8", newline="\n")
    assert "private" not in find_templates([workspace]).render("chat/system", {})


@pytest.mark.parametrize("name", ["chat/none", "../errors", "chat/../chat/system", "", "C:/x"])
def test_a_name_that_is_none(name: str, tmp_path: Path) -> None:
    with pytest.raises(TemplateFailed, match="cannot be used"):
        Templates(tmp_path).render(name, {})


# --- what a template may say -------------------------------------------------------------


def test_conditions_loops_includes_and_filters(tmp_path: Path) -> None:
    own = overriding(tmp_path, "({{ item.path }})", "chat/item")
    text = (
        "{% for item in files if item.path %}\n"
        "{% include 'chat/item' %}{{ '' if loop.last else ', ' }}"
        "{% endfor %}\n"
        "{% if name is defined %}{{ (name | trim | upper) ~ '!' ~ 2 * 3 }}{% endif %}\n"
        "{{ 'a\n\nb' | indent(2, true) }} {{ files | length }} {{ ['x', 'y'] | join('-') }}"
    )
    overriding(own, text)
    files = [{"path": "a.py"}, {"path": ""}, {"path": "b.py"}]
    assert Templates(own).render("chat/system", {"files": files, "name": " n "}) == (
        "(a.py), (b.py)N!6  a\n\n  b 3 x-y"
    )


def test_what_a_value_says_is_text(tmp_path: Path) -> None:
    hostile = "{{ 7 * 7 }} {% raw %} <|im_end|> <b>"
    assert rendered(tmp_path, "[{{ text }}]", text=hostile) == f"[{hostile}]"


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("x = 1", "```py\nx = 1\n```"),
        ("x = 1\n", "```py\nx = 1\n```"),
        ('"""\n```\ncode\n```\n"""', '````py\n"""\n```\ncode\n```\n"""\n````'),
        ("`````", "``````py\n`````\n``````"),
        ("", "```py\n```"),
    ],
)
def test_no_text_closes_its_fence(text: str, block: str, tmp_path: Path) -> None:
    assert fenced(text, "py") == block
    assert rendered(tmp_path, "{{ text | fenced('py') }}", text=text) == block


# --- what stops one ----------------------------------------------------------------------

ESCAPES = {
    "attributes of classes": "{{ ''.__class__.__mro__ }}",
    "attributes by subscript": "{{ ''['__class__'] }}",
    "methods of texts": "{{ 'a'.ljust(1000000000) }}",
    "format": "{{ '{:1000000000}'.format('b') }}",
    "globals": "{{ cycler('a').next.__globals__ }}",
    "the context": "{{ self._TemplateReference__context }}",
    "macros": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "captured blocks": "{% set x %}aaaa{% endset %}{{ x }}",
    "imports": "{% import 'chat/system' as s %}",
    "inheritance": "{% extends 'chat/system' %}",
    "recursive loops": "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "unknown filters": "{{ 'a' | replace('', 'aaaaaaaa') }}",
    "powers": "{{ 9 ** 9 ** 9 }}",
    "formats": "{{ '%1000000000d' % 1 }}",
    "repetition of a text": "{{ 'a' * 1000000000 }}",
    "repetition of a list": "{{ [1] * 1000000000 }}",
    "large numbers": "{% set x = 9223372036854775807 %}{{ x * x * x }}",
    "no such value": "{{ missing }}",
    "an included file elsewhere": "{% include '../../../errors' %}",
    "an include of itself": "{% include 'chat/system' %}",
    "broken syntax": "{% if %}",
    "deep nesting": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "division by zero": "{{ 1 // 0 }}",
}


@pytest.mark.parametrize("name", ESCAPES)
def test_what_no_template_may_do(name: str, tmp_path: Path) -> None:
    with pytest.raises(TemplateFailed) as raised:
        rendered(tmp_path, ESCAPES[name])
    assert str(tmp_path / "own" / "chat" / "system.jinja") in raised.value.message
    assert raised.value.next_step


@pytest.mark.parametrize(
    "text",
    [
        "{% set x = 'aaaaaaaa' %}" + "{% set x = x ~ x %}" * 40 + "{{ x }}",
        "{% set x = 'aaaaaaaa' %}" + "{% set x = x + x %}" * 40 + "{{ x }}",
        "{% set x = 'a' %}" + "{% set x = [x, x, x, x] | join(x) %}" * 40 + "{{ x }}",
        "{% set x = 'a\n' %}" + "{% set x = x ~ (x | indent(64)) %}" * 40 + "{{ x }}",
        "{{ 'a' | indent(1000000000, true) }}",
        "{% for i in items %}{% for i in items %}{{ text }}{% endfor %}{% endfor %}",
    ],
)
def test_no_text_grows_without_end(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(template_bounds, "LARGEST_TEXT", 10_000)
    with pytest.raises(TemplateFailed, match=r"longer than|takes a width"):
        rendered(tmp_path, text, items=[0] * 1000, text="a" * 100)


def test_a_template_that_takes_too_long_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Ten loops within each other would take longer than anybody waits, and write nothing.
    monkeypatch.setattr(template_bounds, "LONGEST_RENDERING", 0.2)
    loops = "".join("{% for x in items %}" for _ in range(10))
    with pytest.raises(TemplateFailed, match=r"longer than 0\.2 s"):
        rendered(tmp_path, loops + "{% endfor %}" * 10, items=[0] * 1000)


def test_a_large_file_is_no_template(tmp_path: Path) -> None:
    with pytest.raises(TemplateFailed, match="larger than 64 KiB"):
        rendered(tmp_path, "a" * (module.LARGEST_TEMPLATE + 1))


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    own = overriding(tmp_path, "")
    (own / "chat" / "system.jinja").write_bytes(b"\xff\xfe")
    with pytest.raises(TemplateFailed, match="cannot be used"):
        Templates(own).render("chat/system", {})
