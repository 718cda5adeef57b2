"""The chat in a real workbench: its answers, what is done with their code, and what is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.clients.vscode.conftest import Server
from tests.clients.vscode.test_suggestions import saved
from tests.support.code_server import CodeServer

pytest.importorskip("playwright", reason="needs the extra e2e: pip install '.[e2e]'")
from tests.support.workbench import Browser, Workbench, until

pytestmark = pytest.mark.editor

CODE = '''def merge(first, second):
    """Merge two sorted lists."""
    merged = []
    while first and second:
        source = first if first[0] <= second[0] else second
        merged.append(source.pop(0))
    return merged + first + second
'''
BETTER = '''def merge(first, second):
    """Merge two sorted lists."""
    merged, i, j = [], 0, 0
    while i < len(first) and j < len(second):
        if first[i] <= second[j]:
            merged.append(first[i])
            i += 1
        else:
            merged.append(second[j])
            j += 1
    return merged + first[i:] + second[j:]
'''
EXPLAINED = f"""`merge` takes the smaller head of the two lists until one is empty.

1. `pop(0)` moves all the rest each time, so it is **quadratic**.
2. It empties the caller's lists.

With two indices it does neither:

```python
{BETTER}```
"""
HOSTILE = """
<b>bold</b> <script>alert(1)</script> <img src="https://evil.example/tag.png">
![picture](https://evil.example/picture.png) [web](https://good.example/) **said**
[run](command:workbench.action.quit) [read](file:///etc/passwd)
"""


def test_a_selection_is_explained_and_the_answers_code_applied_and_inserted(
    window: Workbench, server: Server, folder: Path, pictures: Path
) -> None:
    (folder / "merge.py").write_text(CODE, encoding="utf-8")
    window.open_file("merge.py")
    window.keys.press("Control+a")
    server.says(("def merge", EXPLAINED))
    window.run("fimble: Explain the Selection")
    chat = window.frame()
    chat.get_by_role("button", name="Apply").wait_for()
    window.picture(pictures / "chat.png")
    assert "merge.py:1-7" in chat.locator(".question").inner_text()
    assert "merge.py" in (chat.locator(".context").text_content() or "")
    assert CODE in server.prompts[-1]

    chat.get_by_role("button", name="Apply").click()
    window.page.locator(".monaco-diff-editor .monaco-editor.focused .line-insert").first.wait_for()
    assert (folder / "merge.py").read_text(encoding="utf-8") == CODE
    window.keys.press("Control+Enter")
    window.tab("merge.py", active=True).wait_for()
    saved(window, folder / "merge.py", BETTER)

    chat.get_by_role("button", name="Apply").click()
    window.wait_for_notification("The document was edited since the answer was made.")

    (folder / "copy.py").write_text("x\n", encoding="utf-8")
    window.run("View: Show Explorer")
    window.open_file("copy.py")
    window.keys.press("Control+a")
    window.run("fimble: Open the Chat")
    chat.get_by_role("button", name="Insert").click()
    saved(window, folder / "copy.py", BETTER)


def test_nothing_of_an_answer_acts_or_is_loaded(window: Workbench, server: Server) -> None:
    requested: list[str] = []
    window.page.on("request", lambda request: requested.append(request.url))
    server.says(("Be hostile", HOSTILE))
    window.run("fimble: Open the Chat")
    chat = window.frame()
    chat.get_by_role("combobox", name="Question").fill("Be hostile.")
    chat.get_by_role("button", name="Send").click()
    chat.locator("#exchanges[aria-busy=false] .answer strong").wait_for()

    assert chat.locator(".answer b, .answer script, .answer img").count() == 0
    links = chat.locator(".answer a").evaluate_all("all => all.map(each => each.href)")
    assert links == ["https://evil.example/picture.png", "https://good.example/"]
    assert not [url for url in requested if "evil.example" in url]
    policy = chat.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content")
    assert policy is not None and policy.startswith("default-src 'none'; script-src 'nonce-")
    assert "unsafe" not in policy


def kept(code_server: CodeServer) -> list[dict[str, Any]]:
    """The questions of all conversations that are kept, with their answers."""
    files = code_server.data.glob("User/workspaceStorage/*/fimble.fimble/conversations.json")
    conversations = [each for file in files for each in json.loads(file.read_text("utf-8"))]
    return [exchange for each in conversations for exchange in each["exchanges"]]


def test_conversations_stream_are_stopped_kept_and_deleted(
    browser: Browser, server: Server, folder: Path, code_server: CodeServer
) -> None:
    (folder / "rivers.py").write_text("LONGEST = 'Nile'\n", encoding="utf-8")

    def exchange_of(question: str) -> dict[str, Any] | None:
        found = [each for each in kept(code_server) if each["question"] == question]
        return found[0] if found else None

    with browser.window(folder) as window:
        window.run("fimble: Open the Chat")
        chat = window.frame()
        server.says(("Count", "word " * 10_000), piece=20, delay=0.1)
        question = chat.get_by_role("combobox", name="Question")
        question.fill("Count the rivers.")
        question.press("Enter")
        chat.locator("#exchanges[aria-busy=true] .answer", has_text="word word").wait_for()
        chat.get_by_role("button", name="Stop").click()
        stopped = until(lambda: exchange_of("Count the rivers."), "the stopped answer is kept")
        assert stopped["answer"].startswith("word word")
        assert stopped["problem"] == "Stopped."

        server.says(("And then?", "The *Amazon*."), ("Which is in", "The *Nile*."))
        question.press_sequentially("Which is in @fi")
        chat.get_by_role("option", name="@file:").wait_for()
        question.press("Enter")
        chat.get_by_role("option", name="@file:rivers.py").wait_for()
        question.press("Enter")
        question.press("Enter")
        asked = "Which is in @file:rivers.py"
        answered = until(lambda: exchange_of(asked), "the answer is kept")
        assert answered["answer"] == "The *Nile*."
        assert "LONGEST = 'Nile'" in server.prompts[-1]

        # What a screen reader is told, and the way through the buttons by keys.
        chat.get_by_role("status").get_by_text("Answer: The *Nile*.").wait_for(state="attached")
        for name in ("Attach the Selection", "Send"):
            window.keys.press("Tab")
            chat.locator("button:focus", has_text=name).wait_for()

    # Another window on the folder, and another server.
    with browser.window(folder) as window:
        window.run("fimble: Open the Chat")
        chat = window.frame()
        chat.get_by_role("combobox", name="Conversation").select_option("Count the rivers.")
        chat.locator(".answer em", has_text="Nile").wait_for()
        question = chat.get_by_role("combobox", name="Question")
        question.fill("And then?")
        question.press("Enter")
        until(lambda: exchange_of("And then?"), "the answer is kept")
        assert "The *Nile*." in server.prompts[-1]
        assert "Count the rivers." not in server.prompts[-1]

        chat.get_by_role("button", name="Delete").click()
        window.page.locator(".monaco-dialog-box").get_by_role("button", name="Delete").click()
        until(lambda: exchange_of("And then?") is None, "the conversation is gone")
        assert exchange_of(asked) is None
