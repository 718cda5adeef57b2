"""What scripts rely on: exit codes, JSON, and messages that say what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from fimble.cli.app import COMMANDS, cli
from tests.cli.conftest import CommandLine


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["complete"],
        ["complete", "code.py"],
        ["complete", "code.py:1"],
        ["complete", "code.py:one:1"],
        ["complete", "code.py:1:1", "--max-tokens", "0"],
        ["model", "pull"],
        ["model", "import", "x.gguf", "--precision", "int3"],
        ["complete", "code.py:1:1", "--provider", "gpu"],
        ["engine", "restart"],
        ["engine", "start", "--provider-option", "a=1"],
        ["engine", "start", "--provider", "dml", "--provider-option", "a"],
        ["serve", "--nonsense"],
    ],
    ids=" ".join,
)
def test_bad_usage_exits_with_2_and_prints_nothing_else(
    bare: CommandLine, arguments: list[str]
) -> None:
    ran = bare(*arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.strip()


@pytest.mark.parametrize(
    "command",
    [*COMMANDS, "model pull", "model import", "engine start", "bench infill", "bench typing"],
)
def test_every_help_has_an_example(command: str) -> None:
    result = CliRunner().invoke(cli, [*command.split(), "--help"])
    assert result.exit_code == 0
    groups = ("bench", "model", "engine")
    assert command in groups or f"fimble {command}" in result.output.split("Example")[-1]


def test_version(bare: CommandLine) -> None:
    ran = bare("--version")
    assert ran.code == 0
    assert re.search(r"\d+\.\d+\.\d+", ran.out)


def test_complete_without_a_model_says_which_to_pull(bare: CommandLine, source: Path) -> None:
    ran = bare("complete", f"{source}:2:13")
    assert ran.code == 1
    assert "fimble model pull qwen2.5-coder-0.5b" in ran.err


@pytest.mark.parametrize(
    ("name", "content", "place", "says"),
    [
        ("missing.py", None, "1:1", "cannot be read"),
        ("binary.py", b"\0\1\2", "1:1", "binary"),
        ("latin1.py", b"# \xe9\n", "1:1", "UTF-8"),
        ("large.py", b"x = 1\n" * 400_000, "1:1", "larger than 2 MB"),
        ("short.py", b"x\n", "9:1", "no line 9"),
        ("short.py", b"x\n", "1:9", "no column 9"),
        ("short.py", b"x\n", "0:1", "no line 0"),
    ],
)
def test_complete_in_what_is_no_place(
    fimble: CommandLine, tmp_path: Path, name: str, content: bytes | None, place: str, says: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    ran = fimble("complete", f"{tmp_path / name}:{place}", "--json")
    assert ran.code == 1
    assert says in ran.json["error"]["message"]
    assert says in ran.err


def test_complete_in_json(fimble: CommandLine, source: Path) -> None:
    ran = fimble("complete", f"{source}:2:12", "--json", "--max-tokens", "4")
    assert ran.code == 0, ran
    result = ran.json
    assert set(result) == {"text", "range", "usage", "timings_ms", "model", "provider"}
    assert result["range"]["start"] == {"line": 2, "column": 12}
    usage = result["usage"]
    assert usage["prompt_tokens"] == usage["reused_tokens"] + usage["computed_tokens"] > 0
    # What is healed is generated again, in front of the four.
    healed = 2
    assert 1 <= usage["completion_tokens"] <= 4 + healed
    assert (result["model"], result["provider"]) == ("tiny", "CPU")


def test_the_same_question_again_computes_one_token(fimble: CommandLine, source: Path) -> None:
    place = f"{source}:2:12"
    first = fimble("complete", place, "--json").json["usage"]
    again = fimble("complete", place, "--json").json["usage"]
    assert again["prompt_tokens"] == first["prompt_tokens"]
    assert again["computed_tokens"] == 1


def test_complete_explains_its_prompt(fimble: CommandLine, source: Path) -> None:
    ran = fimble("complete", f"{source}:2:12", "--explain", "--json")
    kinds = {section["kind"]: section for section in ran.json["sections"]}
    # The cursor's line may stand behind the rest, to be healed.
    assert kinds["prefix"]["text"] + ran.json["typed"] == "def f(n):\n    return "
    assert kinds["suffix"]["text"] == "n\n"
    assert all(section["reason"] and section["tokens"] for section in kinds.values())
    used = sum(section["tokens"] for section in ran.json["sections"])
    assert used <= ran.json["budget_tokens"]
    assert ran.json["left_out"] == []


def test_complete_prints_the_text_alone_on_stdout(fimble: CommandLine, source: Path) -> None:
    as_json = fimble("complete", f"{source}:2:12", "--json").json
    plain = fimble("complete", f"{source}:2:12")
    assert plain.out == as_json["text"] + "\n"
    assert "prompt tokens" in plain.err


def test_model_by_path_with_spaces(fimble: CommandLine, source: Path, tmp_path: Path) -> None:
    from tests.support.tiny import make_tiny_package

    folder = make_tiny_package(tmp_path / "my models" / "größer", seed=3)
    ran = fimble("complete", f"{source}:2:12", "--json", "--model", folder)
    assert ran.code == 0, ran
    assert ran.json["model"] == "größer"


def test_unknown_model(fimble: CommandLine, source: Path) -> None:
    ran = fimble("complete", f"{source}:2:12", "--model", "nonsense")
    assert ran.code == 1
    assert "nonsense" in ran.err


def test_engine_start_status_stop(bare: CommandLine) -> None:
    make_home_with_tiny(bare)
    assert bare("engine", "status", "--json").json == {"running": False}
    started = bare("engine", "start", "--json").json
    again = bare("engine", "start", "--json").json
    status = bare("engine", "status", "--json").json
    assert started["pid"] == again["pid"] == status["pid"]
    assert {"pid", "port", "version", "models", "slots"} <= set(status)
    assert bare("engine", "stop", "--json").json == {"stopped": True}
    assert bare("engine", "stop", "--json").json == {"stopped": False}
    assert bare("engine", "status").out == "No engine is running.\n"


def make_home_with_tiny(run: CommandLine) -> None:
    from tests.support.tiny import make_tiny_package

    make_tiny_package(run.home / "models" / "tiny")


def test_model_list_inspect_remove(bare: CommandLine) -> None:
    make_home_with_tiny(bare)
    listed = bare("model", "list", "--json").json
    assert [package["name"] for package in listed["installed"]] == ["tiny"]
    assert "qwen2.5-coder-0.5b" in {entry["name"] for entry in listed["available"]}
    found = bare("model", "inspect", "tiny", "--json").json
    assert found["runnable"] is True
    assert found["window"] == {"tokens": 2048, "limited_by": "context_length"}
    # 2 layers × 2 (K and V) × KV heads × head size × 4 bytes, as inspect says of the package
    assert found["kv"]["bytes_at_window"] == 2048 * found["kv"]["bytes_per_token"]
    assert bare("model", "remove", "tiny").code == 0
    assert bare("model", "list", "--json").json["installed"] == []
    assert bare("model", "remove", "tiny").code == 1


@pytest.mark.parametrize("name", ["../home", "a/b", "C:evil", "."])
def test_remove_never_leaves_the_store(bare: CommandLine, name: str) -> None:
    make_home_with_tiny(bare)
    assert bare("model", "remove", name).code != 0
    assert (bare.home / "models" / "tiny" / "genai_config.json").exists()


def test_import_of_what_is_no_gguf(bare: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUFnot really")
    ran = bare("model", "import", tmp_path / "model.gguf")
    assert ran.code == 1
    assert "model.gguf" in ran.err
    assert bare("model", "list", "--json").json["installed"] == []


def test_a_read_only_home_is_named(bare: CommandLine, tmp_path: Path) -> None:
    bare.home.write_bytes(b"a file where the folder should be")
    ran = bare("engine", "start")
    assert ran.code == 1
    assert "FIMBLE_HOME" in ran.err
