"""Questions to a scripted engine: what is asked, what comes back, what never gets in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fimble.assist.chat.conversation import Conversations
from fimble.assist.chat.folder import FolderSources
from fimble.assist.chat.pieces import Attachment
from fimble.assist.chat.service import ChatService, Question
from fimble.assist.settings import ChatSettings
from fimble.assist.templates import Templates
from fimble.engine.base import ModelInfo
from fimble.engine.protocol import CompletionRequest
from fimble.errors import EngineUnavailable, TemplateFailed, UsageError
from fimble_context.assembly import Diagnostic
from fimble_context.syntax import Document
from tests.chat.places import selected, tree
from tests.chat.test_git_diff import git
from tests.support.scripted_engine import Answer, ScriptedEngine

INFO = ModelInfo(name="scripted", window=8192, provider="none", fim=True, continuation=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tree(tmp_path / "shop")


@pytest.fixture
def sources(root: Path) -> Iterator[FolderSources]:
    # A busy machine takes longer than a person would wait for.
    sources = FolderSources(root, patience=60.0)
    yield sources
    sources.close()


def service(
    sources: FolderSources,
    engine: ScriptedEngine,
    templates: Templates | None = None,
    **settings: int,
) -> ChatService:
    engine.info = replace(engine.info, window=max(engine.info.window, INFO.window))
    return ChatService(
        lambda: engine,
        sources,
        lambda: templates or Templates(),
        lambda: ChatSettings(**settings),
    )


def prompts(engine: ScriptedEngine) -> list[str]:
    """The last message of each request."""
    return [request.messages[-1].content for request in engine.requests]


def left_out(answer: object) -> set[tuple[str, str]]:
    return {(item.path, item.reason) for item in getattr(answer, "left_out")}  # noqa: B009


# --- asking ------------------------------------------------------------------------------


async def test_a_question_and_its_answer(sources: FolderSources) -> None:
    engine = ScriptedEngine(["It is a cart."], piece=4)
    heard: list[str] = []
    answer = await service(sources, engine).ask(Question("What is a cart?"), heard.append)
    assert answer.text == "".join(heard) == "It is a cart."
    assert len(heard) > 1
    (request,) = engine.requests
    assert [message.role for message in request.messages] == ["system", "user"]
    assert request.messages[1].content == "What is a cart?"
    assert request.priority == "chat"
    # Sampling is the package's affair.
    assert (request.temperature, request.top_p, request.top_k) == (None, None, None)
    assert request.repetition_penalty is None
    assert answer.usage.completion_tokens > 0 and answer.turn == 1
    assert answer.context == () and answer.left_out == ()


async def test_what_a_terminal_or_a_reader_would_obey_is_not_shown(sources: FolderSources) -> None:
    said = "\x1b]0;t\x07**a**\r\n```python\nif x: # \u202e\u2066y\n```\n\x9b2J"
    engine = ScriptedEngine([said, "Yes."], piece=1)
    chat, heard = service(sources, engine), list[str]()
    answer = await chat.ask(Question("One?"), heard.append)
    clean = "]0;t**a**\n```python\nif x: # y\n```\n2J"
    assert answer.text == "".join(heard) == clean
    assert [block.text for block in answer.blocks] == ["if x: # y"]
    # The engine has it as it was said, and goes on from it.
    await chat.ask(Question("Two?", conversation=answer.conversation))
    assert engine.requests[1].messages[2].content == said


async def test_earlier_turns_stay_as_they_were_byte_for_byte(sources: FolderSources) -> None:
    engine = ScriptedEngine(["First. 🙂\n", "Second."])
    chat = service(sources, engine)
    await chat.ask(Question("One? @file:shop/cart.py"))
    answer = await chat.ask(Question("Two?"))
    first, second = engine.requests
    assert second.messages[: len(first.messages)] == first.messages
    assert second.messages[2].content == "First. 🙂\n"
    assert answer.turn == 2
    assert first.document == second.document != ""


async def test_conversations_are_apart(sources: FolderSources) -> None:
    engine = ScriptedEngine(["a"])
    chat = service(sources, engine)
    await chat.ask(Question("One?", "x"))
    await chat.ask(Question("Two?", "y"))
    assert len(engine.requests[1].messages) == 2
    assert engine.requests[0].document != engine.requests[1].document


async def test_clear_and_help_need_no_model(sources: FolderSources) -> None:
    engine = ScriptedEngine(["a"])
    chat = service(sources, engine)
    await chat.ask(Question("One?"))
    cleared = await chat.ask(Question("/clear"))
    assert (cleared.text, cleared.turn) == ("", 0)
    assert "/explain" in (await chat.ask(Question("/help"))).text
    await chat.ask(Question("Two?"))
    assert len(engine.requests) == 2 and len(engine.requests[1].messages) == 2


@pytest.mark.parametrize("message", ["", "  \n", "/nonsense", "/explain", "/fix why?"])
async def test_what_cannot_be_meant_is_said(sources: FolderSources, message: str) -> None:
    engine = ScriptedEngine(["a"])
    with pytest.raises(UsageError) as raised:
        await service(sources, engine).ask(Question(message))
    assert raised.value.next_step
    assert engine.requests == []


async def test_a_task_is_its_template_and_what_is_added(sources: FolderSources) -> None:
    engine = ScriptedEngine(["a"])
    chat = service(sources, engine)
    here = selected("def f(n):\n    return │n + 1│\n")
    await chat.ask(Question("/explain why plus one?", attachments=(here,)))
    prompt = prompts(engine)[0]
    assert "Explain what this code does" in prompt and prompt.endswith("why plus one?")
    assert "return n + 1" in prompt
    # With code in the conversation, the next task needs none of its own.
    await chat.ask(Question("/tests"))
    assert prompts(engine)[1].startswith("Write unit tests")


async def test_the_users_template_and_a_broken_one(sources: FolderSources, tmp_path: Path) -> None:
    own = tmp_path / "own"
    tree(own, {"chat/system.jinja": "Be rude.", "chat/explain.jinja": "{{ nothing }}"})
    engine = ScriptedEngine(["a"])
    chat = service(sources, engine, Templates(own))
    await chat.ask(Question("Hi"))
    assert engine.requests[0].messages[0].content == "Be rude."
    with pytest.raises(TemplateFailed, match=r"explain\.jinja"):
        await chat.ask(Question("/explain @file:shop/cart.py"))


async def test_the_engines_failure_leaves_the_conversation_as_it_was(
    sources: FolderSources,
) -> None:
    engine = ScriptedEngine(["a", EngineUnavailable("gone"), "b"])
    chat = service(sources, engine)
    await chat.ask(Question("One?"))
    with pytest.raises(EngineUnavailable):
        await chat.ask(Question("Two?"))
    assert (await chat.ask(Question("Three?"))).turn == 2
    assert [message.content for message in engine.requests[-1].messages[1:]] == [
        "One?", "a", "Three?",
    ]  # fmt: skip


async def test_an_answer_that_is_cut_says_why(sources: FolderSources) -> None:
    engine = ScriptedEngine([Answer("```python\nx", "length")])
    answer = await service(sources, engine, max_tokens=7).ask(Question("One?"))
    assert engine.requests[0].max_tokens == 7
    assert answer.finish_reason == "length"
    assert [block.complete for block in answer.blocks] == [False]


async def test_questions_of_one_conversation_wait_for_each_other(sources: FolderSources) -> None:
    engine = ScriptedEngine(["a", "b"], gate=asyncio.Event())
    chat = service(sources, engine)
    first = asyncio.create_task(chat.ask(Question("One?")))
    second = asyncio.create_task(chat.ask(Question("Two?")))
    for _ in range(50):
        await asyncio.sleep(0)
    assert len(engine.requests) == 1
    assert engine.gate is not None
    engine.gate.set()
    await asyncio.gather(first, second)
    assert len(engine.requests[1].messages) == 4


# --- cancelling --------------------------------------------------------------------------


@pytest.mark.parametrize("steps", range(0, 40, 3))
async def test_cancelled_at_any_moment_it_leaves_nothing_behind(
    sources: FolderSources, steps: int
) -> None:
    engine = ScriptedEngine(["first", "a long answer that is cancelled", "last"], piece=3)
    chat = service(sources, engine)
    await chat.ask(Question("One?"))
    heard: list[str] = []
    task = asyncio.create_task(chat.ask(Question("Two? @file:key.py"), heard.append))
    for _ in range(steps):
        await asyncio.sleep(0)
    done = task.done()
    task.cancel()
    if done:
        assert "".join(heard) == "a long answer that is cancelled"
        return
    with pytest.raises(asyncio.CancelledError):
        await task
    # Whatever had reached the engine was cancelled there, and nothing comes after that.
    assert len(engine.cancelled) == len(engine.requests) - 1
    before = len(heard)
    engine.answers = ["last"]
    assert (await chat.ask(Question("Three?"))).turn == 2
    assert len(heard) == before
    contents = [message.content for message in engine.requests[-1].messages[1:]]
    assert contents == ["One?", "first", "Three?"]


async def test_cancelling_one_that_waits_lets_the_other_go_on(sources: FolderSources) -> None:
    engine = ScriptedEngine(["a"], gate=asyncio.Event())
    chat = service(sources, engine)
    first = asyncio.create_task(chat.ask(Question("One?")))
    second = asyncio.create_task(chat.ask(Question("Two?")))
    for _ in range(50):
        await asyncio.sleep(0)
    second.cancel()
    assert engine.gate is not None
    engine.gate.set()
    assert (await first).text == "a"
    assert len(engine.requests) == 1


# --- context -----------------------------------------------------------------------------


async def test_a_selection_comes_with_what_is_around_it_and_what_it_uses(
    sources: FolderSources, root: Path
) -> None:
    path = root / "shop" / "order.py"
    here = selected(
        "from shop.cart import Cart\n\n\ndef place_order(cart: Cart) -> float:\n"
        "    return │cart.total(1.19)│\n",
        path,
    )
    assert here.document is not None
    here.document.settle()
    sources.open(here.document)
    engine = ScriptedEngine(["```python\nreturn 0.0\n```"])
    answer = await service(sources, engine).ask(Question("Is this right?", attachments=(here,)))
    prompt = prompts(engine)[0]
    kinds = [piece.kind for piece in answer.context]
    assert kinds[-2:] == ["around", "selection"] and "definition" in kinds
    assert "class Cart" in prompt and prompt.endswith("Is this right?")
    around = answer.context[-2]
    assert around.path == "shop/order.py" and around.lines == (5, 5)
    assert "def place_order" in around.reason
    (block,) = answer.blocks
    assert block.target is not None and block.target.version == 3
    text = here.document.text[block.target.start : block.target.end]
    assert text == "return cart.total(1.19)"


async def test_every_file_says_why_it_is_there(sources: FolderSources) -> None:
    engine = ScriptedEngine(["a"])
    message = '@file:shop/cart.py and @file:"my notes.txt" and @symbol:Cart.total'
    answer = await service(sources, engine).ask(Question(message))
    assert [(piece.path, piece.reason) for piece in answer.context] == [
        ("shop/cart.py", "asked for by @file:shop/cart.py"),
        ("my notes.txt", 'asked for by @file:"my notes.txt"'),
        ("shop/cart.py", "defines Cart.total"),
    ]
    assert answer.context[2].text.startswith("    def total")
    assert all(piece.tokens > 0 for piece in answer.context)
    assert answer.left_out == ()


@pytest.mark.parametrize(
    ("mention", "reason"),
    [
        ("@file:.env", "secret (.env)"),
        ("@file:private.py", "ignored (.gitignore)"),
        ("@file:../outside.py", "outside (of the workspace)"),
        ("@file:none.py", "no such file in the workspace"),
        ("@file:shop", "no such file in the workspace"),
        ("@file:picture.png", "binary"),
        ("@file:link.py", "outside (a link leads out of the workspace)"),
        ("@symbol:nothing", "no definition of that name is known"),
        ("@symbol:hidden_two", "no definition of that name is known"),
        ("#selection", "nothing is selected"),
    ],
)
async def test_what_may_not_be_used_is_refused_with_the_reason(
    sources: FolderSources, root: Path, mention: str, reason: str
) -> None:
    (root.parent / "outside.py").write_text("hidden_three = 1\n", encoding="utf-8", newline="\n")
    (root / "picture.png").write_bytes(b"\x89PNG\0\0hidden")
    if mention == "@file:link.py":
        try:
            (root / "link.py").symlink_to(root.parent / "outside.py")
        except OSError:
            pytest.skip("links cannot be made here")
    engine = ScriptedEngine(["a"])
    answer = await service(sources, engine).ask(Question(f"What about {mention}?"))
    assert [item.reason for item in answer.left_out] == [reason]
    assert answer.context == ()
    assert prompts(engine) == [f"What about {mention}?"]


async def test_a_secret_document_that_is_open_is_refused_too(
    sources: FolderSources, root: Path
) -> None:
    engine = ScriptedEngine(["a"])
    secret = Document("TOKEN=hidden\n", path=str(root / ".env"))
    sources.open(secret)
    attachments = (
        Attachment("selection", document=secret, source="u", start=0, end=5),
        Attachment("open files"),
        Attachment("file", path=root / ".env"),
        selected("-----BEGIN RSA PRIVATE KEY-----\n│hidden│\n"),
    )
    answer = await service(sources, engine).ask(Question("What?", attachments=attachments))
    assert prompts(engine) == ["What?"]
    assert len(answer.left_out) == 4


async def test_keys_in_what_is_attached_are_masked(sources: FolderSources) -> None:
    engine = ScriptedEngine(["a"])
    key = "ghp_" + "a1B2" * 10
    here = selected(f'│key = "{key}"│\n')
    question = Question("@file:key.py @workspace key?", attachments=(here,))
    answer = await service(sources, engine).ask(question)
    assert key not in prompts(engine)[0] and "<github-token>" in prompts(engine)[0]
    assert all(key not in piece.text for piece in answer.context)


async def test_diagnostics_open_files_and_the_workspace(sources: FolderSources, root: Path) -> None:
    text = (root / "shop" / "cart.py").read_text(encoding="utf-8")
    document = Document(text, path=str(root / "shop" / "cart.py"))
    sources.open(document)
    at = text.index("sum")
    found = Diagnostic(at, at + 3, "no\nattribute  prices", "mypy")
    engine = ScriptedEngine(["a"])
    attachments = (
        Attachment("diagnostics", document=document, source="u", diagnostics=(found,)),
        Attachment("open files"),
    )
    question = Question("@workspace where is the order placed?", attachments=attachments)
    answer = await service(sources, engine).ask(question)
    by_kind = {piece.kind: piece for piece in answer.context}
    assert by_kind["diagnostics"].text == "line 8: no attribute prices (mypy)\n"
    assert by_kind["open file"].path == "shop/cart.py"
    listed = by_kind["files"].text.split("\n")
    assert "shop/order.py" in listed and ".env" not in listed and "private.py" not in listed


async def test_changes_are_looked_at_for_a_review_and_a_commit_message(
    sources: FolderSources, root: Path
) -> None:
    engine = ScriptedEngine(["a"])
    chat = service(sources, engine)
    with pytest.raises(UsageError, match="no git repository"):
        await chat.ask(Question("/review"))
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    with pytest.raises(UsageError, match="nothing has changed"):
        await chat.ask(Question("/commit"))
    (root / "shop" / "order.py").write_text("changed = 1\n", encoding="utf-8", newline="\n")
    (root / "shop" / "new.py").write_text("new = 1\n", encoding="utf-8", newline="\n")
    git(root, "add", "shop/new.py")
    review = await chat.ask(Question("/review"))
    assert "+changed = 1" in prompts(engine)[0] and "+new = 1" in prompts(engine)[0]
    assert [piece.kind for piece in review.context] == ["diff"]
    await chat.ask(Question("/commit", "c"))
    assert "+changed = 1" not in prompts(engine)[1] and "+new = 1" in prompts(engine)[1]
    await chat.ask(Question("@diff what is new?", "d"))
    assert "+changed = 1" in prompts(engine)[2]


# --- budgets -----------------------------------------------------------------------------


def size(engine: ScriptedEngine, request: CompletionRequest) -> int:
    return sum(engine.count(message.content) + 8 for message in request.messages)


async def test_a_huge_selection_is_cut_at_a_line_and_says_so(sources: FolderSources) -> None:
    lines = "".join(f"    value_{number} = '🙂' * {number}\n" for number in range(5_000))
    here = selected(f"│def f():\n{lines}│")
    engine = ScriptedEngine(["a"])
    chat = service(sources, engine, max_prompt_tokens=2_000)
    answer = await chat.ask(Question("Long?", attachments=(here,)))
    (piece,) = answer.context
    assert piece.text.endswith("\n") and piece.lines is not None
    assert piece.text == here.document.text[: len(piece.text)] if here.document else False
    assert left_out(answer) == {
        ("uri:None", f"lines {piece.lines[1] + 1} to 5001: no room for them")
    }
    assert 1_000 < size(engine, engine.requests[0]) <= 2_000
    # Part of the code is not the code: an answer cannot stand in for it.
    assert piece.target is None


async def test_large_attachments_share_the_room_and_small_ones_stay_whole(
    sources: FolderSources, root: Path
) -> None:
    for name in ("big1.py", "big2.py"):
        text = "".join(f"{name[:4]}_{number} = {number}\n" for number in range(3_000))
        (root / name).write_text(text, encoding="utf-8", newline="\n")
    engine = ScriptedEngine(["a"])
    chat = service(sources, engine, max_prompt_tokens=3_000)
    message = "@file:big1.py @file:shop/order.py @file:big2.py"
    answer = await chat.ask(Question(message))
    tokens = {piece.path: piece.tokens for piece in answer.context}
    assert abs(tokens["big1.py"] - tokens["big2.py"]) < 150
    whole = (root / "shop" / "order.py").read_text(encoding="utf-8")
    assert next(p.text for p in answer.context if p.path == "shop/order.py") == whole
    assert size(engine, engine.requests[0]) <= 3_000
    assert {path for path, _ in left_out(answer)} == {"big1.py", "big2.py"}


async def test_a_line_longer_than_the_room(sources: FolderSources) -> None:
    here = selected("│x = '" + "ä" * 60_000 + "'│")
    engine = ScriptedEngine(["a"])
    chat = service(sources, engine, max_prompt_tokens=1_500)
    answer = await chat.ask(Question("Long?", attachments=(here,)))
    assert size(engine, engine.requests[0]) <= 1_500
    assert len(answer.left_out) == 1


async def test_a_message_that_is_too_long_is_refused(sources: FolderSources) -> None:
    engine = ScriptedEngine(["a"])
    with pytest.raises(UsageError, match="are the most that fit"):
        await service(sources, engine, max_prompt_tokens=600).ask(Question("long " * 3_000))
    assert engine.requests == []


async def test_a_long_conversation_says_what_it_no_longer_holds(
    sources: FolderSources,
) -> None:
    engine = ScriptedEngine(["an answer " * 20])
    chat = service(sources, engine, max_prompt_tokens=1_500)
    said: list[int] = []
    for number in range(24):
        answer = await chat.ask(Question(f"{number}? @file:shop/cart.py"))
        assert size(engine, engine.requests[-1]) <= 1_500
        assert answer.turn == number + 1
        said.append(sum("question" in item.reason for item in answer.left_out))
    assert said[0] == 0 and said[-1] > 5 and said == sorted(said)


async def test_the_window_bounds_everything(sources: FolderSources) -> None:
    engine = ScriptedEngine(["a"])
    chat = service(sources, engine)
    engine.info = replace(engine.info, window=1_200)
    text = "word " * 5_000
    here = selected(f"│{text}│", language="plaintext")
    answer = await chat.ask(Question("Long?", attachments=(here,)))
    request = engine.requests[0]
    assert request.max_tokens == 300
    assert size(engine, request) + request.max_tokens <= 1_200
    assert answer.left_out


async def test_a_slow_machine_gets_less_context(sources: FolderSources) -> None:
    here = selected("│" + "value = 1\n" * 5_000 + "│")
    engine = ScriptedEngine(["a"])
    chat = service(sources, engine)
    await chat.ask(Question("Long?", "a", attachments=(here,)))
    engine.info = replace(engine.info, prefill_tokens_per_s=100.0)
    await chat.ask(Question("Long?", "b", attachments=(here,)))
    fast, slow = (size(engine, request) for request in engine.requests)
    assert fast > 6_000 and 1_500 < slow <= 2_000 + 500


# --- bounded memory ----------------------------------------------------------------------


async def test_forgotten_conversations_say_so(sources: FolderSources) -> None:
    engine = ScriptedEngine(["a"])
    chat = ChatService(
        lambda: engine,
        sources,
        Templates,
        ChatSettings,
        conversations=Conversations(most=2),
    )
    for id in ("x", "y", "z"):
        await chat.ask(Question("Hi", id))
    answer = await chat.ask(Question("Hi again", "x"))
    assert answer.turn == 1
    assert "forgotten" in answer.left_out[0].reason
    rebuilt = await chat.ask(Question("More", "y", history=(("Hi", "a"),)))
    assert rebuilt.turn == 2
    assert [m.content for m in engine.requests[-1].messages[1:]] == ["Hi", "a", "More"]
