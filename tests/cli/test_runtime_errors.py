"""What the runtime says of a package reaches a user in his own terms, and the log too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine
from tests.support.amd_packages import make_loadable_amd_package
from tests.support.tiny import make_tiny_package


@pytest.mark.parametrize(
    ("provider", "says", "next_step"),
    [
        ("DML", "this runtime has no DML provider", "fimble[directml]"),
        ("RyzenAI", "RyzenAI provider", "start fimble inside its environment"),
        ("AMDGPU", "AMDGPU", "AMDGPU_EP_PATH"),
    ],
)
def test_a_provider_that_is_not_there(
    fimble: CommandLine, source: Path, tmp_path: Path, provider: str, says: str, next_step: str
) -> None:
    package = make_tiny_package(tmp_path / "package")
    path = package / "genai_config.json"
    config = json.loads(path.read_bytes())
    config["model"]["decoder"]["session_options"] = {"provider_options": [{provider: {}}]}
    path.write_text(json.dumps(config), encoding="utf-8")
    ran = fimble("complete", f"{source}:2:12", "--json", "--model", package)
    assert ran.code == 1
    error = ran.json["error"]
    assert says in error["message"] and "onnxruntime-genai says: " in error["message"]
    assert next_step in error["next_step"]
    log = (fimble.home / "logs" / "engine.log").read_text(encoding="utf-8")
    assert error["message"] in log


def test_the_cpu_in_its_place_is_a_users_wish_and_said(
    bare: CommandLine, source: Path, tmp_path: Path
) -> None:
    package = make_loadable_amd_package(tmp_path, "A")
    started = bare("engine", "start", "--model", package, "--provider", "cpu", "--slots", "1")
    assert started.code == 0
    assert "on CPU" in started.out and "runs on the CPU, as set" in started.out
    # It stays where it is for whoever wishes nothing else.
    ran = bare("chat", "hello", "--model", package, "--max-tokens", "2", "--json")
    assert ran.json["provider"] == "CPU"
    refused = bare("chat", "hello", "--model", package, "--provider", "dml", "--json")
    assert refused.code == 1 and "DML" in refused.json["error"]["message"]
