"""What holds for every prompt, whatever the budget: size, no text twice, nothing refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fimble_context.assembly import Workspace
from fimble_context.syntax import Document, Edit
from tests.context.workspace_fixture import OWN, Counter, Fixture, Opened, as_prompt, opened

SECRET = "hunter22hunter22"


def module(name: str, count: int) -> str:
    return "".join(
        f"def {name}_{number}(first: int, second: str) -> str:\n"
        f'    """Does {name} number {number}."""\n'
        f"    marker_{name}_{number} = second * first\n"
        f"    return marker_{name}_{number}\n\n\n"
        for number in range(count)
    )


def imports(name: str, count: int) -> str:
    groups = (range(first, min(first + 4, count)) for first in range(0, count, 4))
    return "".join(
        f"from {name} import " + ", ".join(f"{name}_{number}" for number in group) + "\n"
        for group in groups
    )


BODY = "".join(
    f"def use_{number}() -> str:\n"
    f"    first = alpha_{number % 30}({number}, 'x')\n"
    f"    second = beta_{number % 30}({number}, first)\n"
    f"    return first + second\n\n\n"
    for number in range(200)
)
FIXTURE = Fixture.parse(
    f"=== file alpha.py\n{module('alpha', 30)}"
    f"=== edited beta.py\n{module('beta', 28)}│def beta_28(first: int, second: str) -> str:\n"
    f"    return second\n│\n\n{module('gamma', 3)}"
    f"=== file private/hidden.py\nHIDDEN = '{SECRET}'\n\ndef alpha_99() -> str:\n    return 'a'\n"
    "=== file .gitignore\nprivate/\n"
    f"=== file .env\nPASSWORD={SECRET}\n"
    f"=== visited .env.production\nPASSWORD=│{SECRET}\n"
    f'=== visited credentials.json\n{{"password": │"{SECRET}"}}\n'
    f"=== cursor main.py\n{imports('alpha', 30)}{imports('beta', 29)}"
    f"from private.hidden import alpha_99\n\n\n{BODY}│"
)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    with opened(FIXTURE, tmp_path_factory.mktemp("prompts")) as case:
        yield case


@settings(max_examples=60, deadline=None)
@given(budget=st.integers(64, 8192), share=st.floats(0, 1), anew=st.booleans())
def test_every_prompt(case: Opened, budget: int, share: float, anew: bool) -> None:
    """With and without a memory of earlier prompts, at any place and budget."""
    document, offset = case.document, int(len(case.document.text) * share)
    workspace = Workspace(case.workspace.index) if anew else case.workspace
    context = workspace.assemble(
        document, offset, path=case.path, budget=budget, count_tokens=Counter()
    )
    prompt = as_prompt(context)
    size = Counter()([prompt])[0]
    assert size <= context.tokens <= budget
    # There is far more than fits; the next line (30 tokens) may not have fitted any more.
    assert context.tokens >= min(budget * 0.97, budget - 32)
    assert SECRET not in prompt
    assert "private/hidden.py" not in prompt
    assert ".env" not in prompt
    others = [item for item in context.sections if item.kind not in OWN]
    assert len({item.path for item in others}) == len(others)
    for name in ("alpha", "beta"):
        text = "".join(item.text for item in others)
        for number in range(30):
            assert text.count(f"def {name}_{number}(") <= 1
    kinds = [item.kind for item in context.sections]
    assert kinds[-2:] == ["prefix", "suffix"]
    prefix, suffix = context.sections[-2:]
    assert document.text[:offset].endswith(prefix.text)
    assert document.text[offset:].startswith(suffix.text)


@pytest.mark.parametrize("budget", [1200, 2048, 4096, 8192])
def test_a_budget_is_used_to_97_percent_at_least(case: Opened, budget: int) -> None:
    text = case.document.text
    for number in (0, 50, 100, 150, 199):
        offset = text.index("first + second", text.index(f"def use_{number}("))
        workspace = Workspace(case.workspace.index)
        context = workspace.assemble(
            case.document, offset, path=case.path, budget=budget, count_tokens=Counter()
        )
        assert context.tokens >= 0.97 * budget


def test_what_is_left_out_is_named_with_a_reason(case: Opened) -> None:
    context = Workspace(case.workspace.index).assemble(
        case.document, len(case.document.text) // 2, path=case.path, budget=900,
        count_tokens=Counter(),
    )  # fmt: skip
    reasons = {(item.path, item.reason) for item in context.left_out}
    assert ("main.py", "text further up is over the budget") in reasons
    assert any(path == "alpha.py" and "over the budget" in why for path, why in reasons)


def test_a_refused_document_gets_no_other_files_and_shows_in_none(tmp_path: Path) -> None:
    fixture = Fixture.parse(
        f"=== file keys.py\ndef load_key() -> str:\n    return 'k'\n"
        f"=== cursor .env\nKEY={SECRET}\nload_key│\n"
    )
    with opened(fixture, tmp_path) as case:
        context = case.assemble(500)
        assert [item.kind for item in context.sections] == ["prefix", "suffix"]
        case.type(f"\nMORE={SECRET}")
        main = Document("def load_key() -> None:\n    load_key", path="keys.py")
        path = case.path.with_name("keys.py")
        case.workspace.opened(path, main)
        other = case.workspace.assemble(
            main, len(main.text), path=path, budget=500, count_tokens=Counter()
        )
        assert SECRET not in as_prompt(other)


def test_an_ignore_file_that_appears_takes_effect(tmp_path: Path) -> None:
    fixture = Fixture.parse(
        "=== file secret_plan.py\ndef conquer(world: str) -> None:\n    print(world)\n"
        "=== cursor main.py\nfrom secret_plan import conquer\n\nconquer(│)\n"
    )
    with opened(fixture, tmp_path) as case:
        assert "def conquer" in as_prompt(case.assemble(300))
        ignore = case.path.with_name(".gitignore")
        ignore.write_text("secret_plan.py\n", encoding="utf-8")
        case.workspace.file_changed(ignore)
        assert "def conquer" not in as_prompt(case.assemble(300))


def test_a_file_that_vanishes_makes_the_context_smaller(tmp_path: Path) -> None:
    fixture = Fixture.parse(
        "=== file reports/weekly.py\ndef weekly(orders, warehouse):\n"
        "    totals = warehouse.collect_totals(orders)\n    return render(totals, orders)\n"
        "=== cursor monthly.py\ndef monthly(orders, warehouse):\n"
        "    totals = warehouse.collect_totals(orders)\n    │\n"
    )
    with opened(fixture, tmp_path) as case:
        (case.path.parent / "reports" / "weekly.py").unlink()
        context = case.assemble(400)
        assert [item.kind for item in context.sections] == ["prefix", "suffix"]


def test_broken_code_and_an_untitled_document_still_get_a_context(case: Opened) -> None:
    document = Document("def (((:\n  alpha_1(", path="Untitled-1", language="python")
    context = case.workspace.assemble(
        document, len(document.text), path=None, budget=400, count_tokens=Counter()
    )
    assert context.sections[-2].text.endswith("alpha_1(")
    edit = Edit(0, len(document.text), "")
    document.apply(edit)
    empty = case.workspace.assemble(document, 0, path=None, budget=64, count_tokens=Counter())
    assert empty.tokens <= 64
