"""``fimble doctor`` as a user runs it, on the machine that the tests run on."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine
from tests.support.tiny import make_tiny_package

ALWAYS = {
    "system", "python", "memory", "disk", "home", "runtime", "runtime import", "npu", "gpu",
    "engine", "editors",
}  # fmt: skip
DATA = Path(__file__).parents[1] / "doctor" / "data"


def test_a_real_run(bare: CommandLine) -> None:
    make_tiny_package(bare.home / "models" / "tiny")
    ran = bare("doctor", "--json")
    report = ran.json
    assert set(report) == {"ok", "version", "checks", "counts"}
    for check in report["checks"]:
        assert set(check) == {"name", "status", "detail", "next_step"}
        assert check["status"] in ("ok", "warn", "fail")
        assert check["detail"]
        assert bool(check["next_step"]) or check["status"] == "ok"
    names = {check["name"]: check for check in report["checks"]}
    assert set(names) >= ALWAYS | {"model tiny"}
    assert report["ok"] == all(check["status"] != "fail" for check in report["checks"])
    assert ran.code == (0 if report["ok"] else 1)
    for name in ("runtime", "runtime import", "model tiny", "home"):
        assert names[name]["status"] == "ok", names[name]
    assert not (bare.home / "run" / "engine.json").exists(), "no engine was started"


def test_for_people_each_line_has_its_next_step(bare: CommandLine) -> None:
    ran = bare("doctor")
    assert ran.code == 0
    assert "→ Run `fimble model pull qwen2.5-coder-0.5b`." in ran.out
    assert ran.out.rstrip().splitlines()[-1].startswith("0 failed, ")
    assert not bare.home.exists(), "nothing was made"


def test_a_failure_exits_with_1(bare: CommandLine) -> None:
    make_tiny_package(bare.home / "models" / "tiny")
    data = bare.home / "models" / "tiny" / "model.onnx.data"
    data.write_bytes(data.read_bytes()[:100])
    ran = bare("doctor", "--json")
    assert ran.code == 1 and ran.json["ok"] is False
    assert bare("doctor").code == 1


def test_a_home_that_is_a_file_is_named(bare: CommandLine) -> None:
    bare.home.write_bytes(b"")
    ran = bare("doctor", "--json")
    assert ran.code == 1
    failed = [check for check in ran.json["checks"] if check["status"] == "fail"]
    assert "FIMBLE_HOME" in " ".join(check["next_step"] for check in failed)


def test_the_running_engine_is_shown(fimble: CommandLine) -> None:
    fimble("engine", "start")
    (engine,) = [
        each for each in fimble("doctor", "--json").json["checks"] if each["name"] == "engine"
    ]
    assert engine["status"] == "ok" and "process" in engine["detail"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a shell script as a tool")
def test_tools_of_the_system_are_asked_and_those_of_the_workspace_are_not(
    bare: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, tools, mark = tmp_path / "workspace", tmp_path / "tools", tmp_path / "mark"
    for folder in (workspace, tools):
        folder.mkdir()
    recorded = DATA / "xrt" / "linux_npu4.out"
    scripts = {
        tools / "xrt-smi": f"cat {recorded}",
        workspace / "xrt-smi": f"touch {mark}",
        workspace / "rocminfo": f"touch {mark}",
        workspace / "vulkaninfo": f"touch {mark}",
    }
    for path, line in scripts.items():
        path.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8", newline="\n")
        path.chmod(0o755)
    searched = os.pathsep.join([".", "", str(workspace), str(tools), os.environ["PATH"]])
    monkeypatch.setenv("PATH", searched)
    checks = {each["name"]: each for each in bare("doctor", "--json", cwd=workspace).json["checks"]}
    assert "firmware 1.0.0.63, devices RyzenAI-npu4" in checks["xrt"]["detail"]
    assert "XDNA 2" in checks["npu"]["detail"]
    # There is no /dev/accel on this machine, whatever xrt-smi says.
    assert checks["npu driver"]["status"] in ("warn", "ok")
    assert not mark.exists()


def test_its_json_is_one_document_on_stdout(bare: CommandLine) -> None:
    assert json.loads(bare("doctor", "--json").out)["version"]
