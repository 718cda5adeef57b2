"""How a prompt is said to a server."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fimble.engine.protocol import CONTROL_TOKENS, ChatMessage, Control, Text
from fimble.engine.remote.prompts import (
    PromptForm,
    estimated_tokens,
    harmless,
    messages_body,
    prompt_body,
    without_last_blank,
)
from fimble.errors import RequestRejected

FIM = (
    Control("file_sep"),
    Text("other.py\nx = 1\n"),
    Control("fim_prefix"),
    Text("a = "),
    Control("fim_suffix"),
    Text("\nb"),
    Control("fim_middle"),
    Text("ty"),
)


@pytest.mark.parametrize(
    ("form", "body"),
    [
        (
            "text",
            {
                "prompt": "<|file_sep|>other.py\nx = 1\n<|fim_prefix|>a = <|fim_suffix|>\nb"
                "<|fim_middle|>ty"
            },
        ),
        ("suffix", {"prompt": "a = ty", "suffix": "\nb"}),
        ("plain", {"prompt": "a = ty"}),
    ],
)
def test_forms(form: PromptForm, body: dict[str, str]) -> None:
    assert prompt_body(FIM, form, None) == body


def test_ids_cannot_be_said_as_text() -> None:
    with pytest.raises(RequestRejected):
        prompt_body([1, 2], "text", None)


@given(st.lists(st.sampled_from([*CONTROL_TOKENS.values(), "<|", "|>", "x", "\ud800"])))
def test_no_text_has_a_control_token(parts: list[str]) -> None:
    text = "".join(parts)
    said = [
        prompt_body(text, "text", None)["prompt"],
        prompt_body((Text(text),), "text", None)["prompt"],
        *prompt_body((Text(text), Control("fim_suffix"), Text(text)), "suffix", None).values(),
        messages_body([ChatMessage("user", text)])["messages"][0]["content"],
    ]
    for each in said:
        assert not any(spelling in each for spelling in CONTROL_TOKENS.values())
        each.encode("utf-8")
        # Nothing else is changed.
        assert re.sub("[\u200b\ufffd]", "", each) == re.sub("[\ud800]", "", text)


def test_text_without_any_stays() -> None:
    assert harmless("if a <| b |> c: <|fim|>") == "if a <| b |> c: <|fim|>"


def test_a_guess_at_tokens_is_never_nothing() -> None:
    assert estimated_tokens("") == 0
    assert estimated_tokens("x") == 1
    assert estimated_tokens("x" * 280) == 100


@pytest.mark.parametrize(
    ("before", "kept", "blank"),
    [("return ", "return", " "), ("\n    ", "\n   ", " "), ("f(", "f(", ""), ("a\t", "a\t", "")],
)
def test_a_blank_in_front_of_the_cursor_is_taken_back(before: str, kept: str, blank: str) -> None:
    around = (Control("fim_suffix"), Text("b "), Control("fim_middle"))
    prompt = (Control("fim_prefix"), Text(before), *around)
    assert without_last_blank(prompt) == ((Control("fim_prefix"), Text(kept), *around), blank)
    assert without_last_blank((Text(before),)) == ((Text(kept),), blank)


def test_what_has_none() -> None:
    for prompt in ("x ", [1, 2], (), (Control("fim_prefix"), Control("fim_suffix"))):
        assert without_last_blank(prompt) == (prompt, "")
