"""Settings as a user may write them, right and wrong."""

from __future__ import annotations

from typing import Any

import pytest

from fimble.assist.settings import CompletionSettings
from fimble.lsp.settings import LogSettings, Settings, merge_settings, parse_settings


@pytest.mark.parametrize(
    ("raw", "settings"),
    [
        (None, Settings()),
        ({}, Settings()),
        ({"model": "qwen2.5-coder-0.5b"}, Settings(model="qwen2.5-coder-0.5b")),
        (
            {"completion": {"maxTokens": 8, "disabledLanguages": ["c"]}, "log": {"level": "debug"}},
            Settings(
                completion=CompletionSettings(max_tokens=8, disabled_languages=("c",)),
                log=LogSettings("debug"),
            ),
        ),
        (
            {"completion.enabled": False, "completion": {"excludePatterns": [".env"]}},
            Settings(completion=CompletionSettings(enabled=False, exclude_patterns=(".env",))),
        ),
        (
            {"provider": "webgpu", "chatModel": "my-14b", "chatProvider": "DML"},
            Settings(provider="webgpu", chat_model="my-14b", chat_provider="DML"),
        ),
        ({"client": {"anything": 1}, "trace": {"server": "off"}}, Settings()),
    ],
)
def test_right_settings(raw: Any, settings: Settings) -> None:
    assert parse_settings(raw) == (settings, [])


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ([1], "The settings must be an object; got [1]."),
        (
            {"completion": {"maxTokens": "many"}},
            'completion.maxTokens must be a whole number from 1 to 1024; got "many". '
            "The default is used: 64.",
        ),
        (
            {"completion": {"maxTokens": 0}},
            "completion.maxTokens must be a whole number from 1 to 1024; got 0. "
            "The default is used: 64.",
        ),
        (
            {"completion": {"maxTokens": True}},
            "completion.maxTokens must be a whole number from 1 to 1024; got true. "
            "The default is used: 64.",
        ),
        (
            {"completion.enabled": "yes"},
            'completion.enabled must be true or false; got "yes". The default is used: true.',
        ),
        (
            {"completion": {"disabledLanguages": "c"}},
            'completion.disabledLanguages must be a list of strings; got "c". '
            "The default is used: [].",
        ),
        (
            {"log": {"level": "loud"}},
            'log.level must be one of error, warning, info, debug; got "loud". '
            'The default is used: "info".',
        ),
        ({"completion": 3}, "completion must be an object; got 3."),
        (
            {"completion": {"maxToken": 3}},
            "completion.maxToken is not a setting. Did you mean completion.maxTokens?",
        ),
        ({"colour": "red"}, "colour is not a setting."),
        (
            {"completion": 1, "completion.enabled": True},
            "completion is set twice, as a value and as a section.",
        ),
    ],
)
def test_wrong_settings_are_named_and_the_defaults_used(raw: Any, problem: str) -> None:
    settings, problems = parse_settings(raw)
    assert problems == [problem]
    assert settings == Settings()


@pytest.mark.parametrize(
    "path", ["./evil", "/tmp/evil", "..", "C:\\evil", "a/b", "~/evil", "c:evil", "\\\\host\\evil"]
)
def test_settings_may_not_name_a_path(path: str) -> None:
    settings, problems = parse_settings({"model": path})
    assert settings.model == ""
    assert problems[0].startswith("model must be the name of an installed package, never a path")


def test_one_wrong_value_does_not_touch_its_neighbours() -> None:
    settings, problems = parse_settings({"completion": {"maxTokens": -1, "enabled": False}})
    assert settings.completion == CompletionSettings(enabled=False)
    assert len(problems) == 1


def test_settings_lie_over_options_key_by_key() -> None:
    base = {"completion.maxTokens": 8, "model": "a"}
    over = {"completion": {"enabled": False}, "model": "b"}
    merged = {"completion": {"maxTokens": 8, "enabled": False}, "model": "b"}
    assert merge_settings(base, over) == merged
    assert merge_settings(base, None) == base
    assert merge_settings(None, over) == over
