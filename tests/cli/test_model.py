"""``fimble model pull`` and ``inspect`` as a user runs them."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import CommandLine
from tests.support.amd_packages import AMD_PACKAGES, MIB, make_amd_package, make_large_file
from tests.support.amd_repository import amd_repository
from tests.support.tiny import make_tiny_package

GIB = 1 << 30


@pytest.fixture
def no_ryzen_ai(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine that runs the tests has, it has no AMD software."""
    for name in ("RYZEN_AI_INSTALLATION_PATH", "RYZENAI_EP_PATH", "AMDGPU_EP_PATH"):
        monkeypatch.delenv(name, raising=False)


def amd_package(folder: Path, letter: str) -> Path:
    """A row's package whose weights file has the size of the real one."""
    row = AMD_PACKAGES[letter]
    outer = make_amd_package(folder, letter)
    make_large_file(next(outer.rglob(row.data)), row.weights)
    return outer


def inspect(run: CommandLine, *arguments: str | Path) -> dict[str, Any]:
    ran = run("model", "inspect", *arguments, "--json")
    assert ran.code == 0, ran
    found: dict[str, Any] = ran.json
    return found


# --- inspect -------------------------------------------------------------------------------


def test_the_json_form_has_exactly_these_keys(bare: CommandLine, tmp_path: Path) -> None:
    form = inspect(bare, make_tiny_package(tmp_path / "tiny-coder"))
    assert list(form) == [
        *("name", "model_type", "provider", "provider_options", "window", "kv", "fim"),
        *("files", "runnable", "problem", "next_step", "plan"),
    ]
    assert form["window"] == {"tokens": 2048, "limited_by": "context_length"}
    assert form["kv"] == {"bytes_per_token": 512, "bytes_at_window": 512 * 2048}
    assert form["files"][0].keys() == {"name", "bytes"}
    assert (form["runnable"], form["problem"], form["next_step"]) == (True, None, None)
    plan = form["plan"]
    assert (plan["max_length"], plan["limited_by"], plan["fits"]) == (2048, "window", True)
    assert plan["kv_bytes"] == 2 * 2048 * 512
    assert plan["total_bytes"] == plan["weights_bytes"] + plan["working_bytes"] + plan["kv_bytes"]
    assert [each["tokens"] for each in plan["lengths"]] == [1024, 2048]


REFUSALS = {
    "A": ("DirectML provider, which exists on Windows only", "pip install 'fimble[directml]'"),
    "B": ("AMDGPU, whose library libamdgpu-ep.so was not found", "set AMDGPU_EP_PATH"),
    "C": ("DirectML provider, which exists on Windows only", "pip install 'fimble[directml]'"),
    "D": ("a hybrid package (NPU and GPU together)", "inside AMD's Ryzen AI 1.7.1 environment"),
    "E": ("AMD's Ryzen AI 1.7.1 runtime, which was not found", "Install Ryzen AI 1.7.1 from AMD"),
}


@pytest.mark.usefixtures("no_ryzen_ai")
@pytest.mark.skipif(importlib.util.find_spec("winreg") is not None, reason="Linux' refusals")
@pytest.mark.parametrize("letter", AMD_PACKAGES)
def test_each_of_amds_packages(bare: CommandLine, tmp_path: Path, letter: str) -> None:
    row = AMD_PACKAGES[letter]
    form = inspect(bare, amd_package(tmp_path / "größe 1", letter), "--free-memory", "24GiB")
    assert (form["name"], form["model_type"]) == (row.folder, "qwen2")
    assert (form["provider"], form["provider_options"]) == (row.provider, row.options)
    assert form["window"] == {"tokens": row.window[0], "limited_by": row.window[1]}
    assert form["kv"] == {
        "bytes_per_token": row.kv[0] * 1024,
        "bytes_at_window": row.kv[1] * MIB,
    }
    assert form["fim"] == row.fim
    problem, next_step = REFUSALS[letter]
    assert form["runnable"] is False
    assert problem in form["problem"]
    assert next_step in form["next_step"]
    # Two slots of at most 8,192 tokens; D's buffers are not shared.
    tokens, copies = min(8192, row.window[0]), 1 if row.share_buffer else 2
    assert form["plan"]["max_length"] == tokens
    assert form["plan"]["kv_bytes"] == 2 * tokens * row.kv[0] * 1024 * copies


def test_two_slots_of_a_14b_at_8192_tokens_are_3_gib(bare: CommandLine, tmp_path: Path) -> None:
    plan = inspect(bare, amd_package(tmp_path, "B"), "--free-memory", "16g")["plan"]
    assert (plan["slots"], plan["max_length"], plan["kv_bytes"]) == (2, 8192, 3 * GIB)
    assert plan["memory"] == {
        "free_bytes": 16 * GIB,
        "total_bytes": 16 * GIB,
        "source": "as given",
    }


def test_little_memory_makes_the_context_shorter_and_says_why(
    bare: CommandLine, tmp_path: Path
) -> None:
    package = amd_package(tmp_path, "B")
    form = inspect(bare, package, "--free-memory", "11GiB")
    plan = form["plan"]
    assert plan["limited_by"] == "memory" and plan["fits"]
    assert 1024 <= plan["max_length"] < 8192
    assert plan["total_bytes"] <= 11 * GIB
    assert "the most that fits into the 11.0 GiB" in plan["reason"]
    assert plan["lower_steps"] == sorted(plan["lower_steps"], reverse=True)
    assert any("--slots 1" in step for step in plan["advice"])
    fewer = inspect(bare, package, "--free-memory", "11GiB", "--slots", "1")["plan"]
    assert fewer["max_length"] > plan["max_length"]


def test_what_fits_nowhere_is_refused_with_numbers(bare: CommandLine, tmp_path: Path) -> None:
    ran = bare("model", "inspect", make_tiny_package(tmp_path / "t"), "--free-memory", "100M")
    assert "problem" in ran.out
    assert "100 MiB are free" in ran.out
    assert "runs here       no" in ran.out


def test_the_text_form_has_a_chart(bare: CommandLine, tmp_path: Path) -> None:
    ran = bare("model", "inspect", amd_package(tmp_path, "B"), "--free-memory", "12GiB")
    assert ran.code == 0
    bars = [line for line in ran.out.splitlines() if "█" in line and "weights" not in line]
    assert [bar.split()[0] for bar in bars][-1] == "32,768"
    lengths = [bar.count("█") + bar.count("▒") for bar in bars]
    assert lengths == sorted(lengths)
    assert sum("◀" in bar for bar in bars) == 1
    assert any("│" in bar for bar in bars)
    assert "profile=hip" in ran.out and "session.disable_cpu_ep_fallback=1" in ran.out
    assert "temperature 0.7, top_k 20, top_p 0.8, repetition_penalty 1.05" in ran.out


def test_keys_that_nobody_knows_are_named(bare: CommandLine, tmp_path: Path) -> None:
    folder = make_tiny_package(tmp_path / "t")
    config = json.loads((folder / "genai_config.json").read_text(encoding="utf-8"))
    config["search"]["custom_allocator"] = 1
    config["remark"] = "read over"
    (folder / "genai_config.json").write_text(json.dumps(config), encoding="utf-8")
    ran = bare("model", "inspect", folder)
    assert "unknown keys    search.custom_allocator, remark" in ran.out
    assert "refuses: search.custom_allocator" in ran.out


def test_a_picture_needs_matplotlib_and_a_png(bare: CommandLine, tmp_path: Path) -> None:
    package = make_tiny_package(tmp_path / "t")
    assert bare("model", "inspect", package, "--plot", tmp_path / "memory.jpg").code == 2
    ran = bare("model", "inspect", package, "--plot", tmp_path / "memory.png")
    assert ran.code == 0, ran
    assert (tmp_path / "memory.png").read_bytes().startswith(b"\x89PNG\r\n")
    blocked = tmp_path / "blocked"
    (blocked / "matplotlib").mkdir(parents=True)
    source = "raise ImportError('not here')\n"
    (blocked / "matplotlib" / "__init__.py").write_text(source, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(blocked))
        ran = bare("model", "inspect", package, "--plot", tmp_path / "other.png")
    assert ran.code == 1
    assert "pip install 'fimble[plot]'" in ran.err


@pytest.mark.parametrize("size", ["many", "-1", "12 apples", "1e9", "nan"])
def test_a_size_that_is_none(bare: CommandLine, tmp_path: Path, size: str) -> None:
    ran = bare("model", "inspect", make_tiny_package(tmp_path / "t"), f"--free-memory={size}")
    assert ran.code == 2
    assert "12GiB" in ran.err


def test_two_packages_in_a_folder_are_both_listed(bare: CommandLine, tmp_path: Path) -> None:
    make_tiny_package(tmp_path / "ü b" / "one")
    make_tiny_package(tmp_path / "ü b" / "two")
    ran = bare("model", "inspect", tmp_path / "ü b")
    assert ran.code == 1
    assert str(tmp_path / "ü b" / "one") in ran.err and str(tmp_path / "ü b" / "two") in ran.err


# --- pull ----------------------------------------------------------------------------------


def test_a_repository_is_pulled_from_the_mirror_that_is_set(
    bare: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with amd_repository(tmp_path / "made", "B") as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        monkeypatch.setenv("HF_TOKEN", "hf_mine")
        ran = bare("model", "pull", hub.repo, "--json")
        assert ran.code == 0, ran
        assert ran.json["name"] == "amd-qwen2.5-coder-14b-instruct-gpuep"
        assert "Licence: apache-2.0" in ran.err
        assert {a.token for a in hub.asked if a.server == "hub"} == {"Bearer hf_mine"}
        by_name = inspect(bare, "amd-qwen2.5-coder-14b-instruct-gpuep")
        assert by_name["fim"] is True and by_name["provider"] == "AMDGPU"
        # By the catalogue's name it is the same one.
        again = bare("model", "pull", "amd-qwen2.5-coder-14b-instruct-gpuep")
        assert "is installed already" in again.err


def test_offline_is_offline(
    bare: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with amd_repository(tmp_path / "made", "A") as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        ran = bare("model", "pull", hub.repo)
        assert ran.code == 1
        assert "HF_HUB_OFFLINE is set" in ran.err
        assert hub.asked == []


def test_another_name_may_be_given(
    bare: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with amd_repository(tmp_path / "made", "E") as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        assert bare("model", "pull", hub.repo, "--name", "../evil").code == 2
        assert bare("model", "pull", hub.repo, "--name", "npu").code == 0
    assert inspect(bare, "npu")["window"]["tokens"] == 16384
