"""What the runtime says of a package reaches a user in his own terms, and the log too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine
from tests.support.tiny import make_tiny_package


@pytest.mark.parametrize(
    ("provider", "says", "next_step"),
    [
        ("DML", "this runtime has no DML provider", "fimble doctor"),
        ("RyzenAI", "RyzenAI provider", "Ryzen AI environment"),
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
