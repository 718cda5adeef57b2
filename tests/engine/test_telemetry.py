"""Nothing leaves the machine: the runtime's own telemetry is off wherever it is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fimble.doctor.runtime import probe_import
from tests.support.tiny import make_tiny_package

#: Where the runtime keeps what it has not sent yet, on each system.
PLACES = ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "USERPROFILE", "TMPDIR")
#: With one of these it is silent by itself, and a test proves nothing.
QUIET = ("CI", "GITHUB_ACTIONS", "TF_BUILD", "ORT_DISABLE_TELEMETRY", "ORT_RUNNING_UNIT_TESTS")

OPEN = """
import sys
from pathlib import Path
from fimble.engine.package import read_package_config
from fimble.engine.runtime import Model

Model(read_package_config(Path(sys.argv[1]))).session(16).append([1, 2, 3])
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    for name in PLACES:
        monkeypatch.setenv(name, str(home))
    for name in QUIET:
        monkeypatch.delenv(name, raising=False)
    return home


def kept(home: Path) -> list[str]:
    """Files of a name that the runtime's telemetry uses."""
    marks = ("onnxruntime", "deviceid", "Microsoft")
    return [str(path) for path in home.rglob("*") if any(mark in path.name for mark in marks)]


def test_a_model_that_computes_reports_nothing(home: Path, tmp_path: Path) -> None:
    package = make_tiny_package(tmp_path / "tiny")
    subprocess.run([sys.executable, "-c", OPEN, str(package)], check=True, env=os.environ)
    assert kept(home) == []


def test_the_doctor_reports_nothing(home: Path, tmp_path: Path) -> None:
    assert probe_import(tmp_path).version
    assert kept(home) == []
