"""A library planted where a runtime may look for its provider never runs in the engine.

The runtime loads provider libraries from the current directory when a package asks for
RyzenAI or AMDGPU, and custom operators from wherever a package says; the system's loader
follows relative entries of LD_LIBRARY_PATH. Here is a real library, whose constructor leaves
a mark, and for each way a control that it would run without what the engine does.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fimble.engine.options import EngineOptions
from tests.engine.process import RunningEngine, running_engine

PROVIDERS = ["RyzenAI", "AMDGPU", "VitisAI", "WebGPU"]
#: Every name under which a runtime has been seen to look for one, and likely ones.
NAMES = [
    f"{prefix}{name}.so"
    for prefix in ("lib", "")
    for name in (
        "onnxruntime_providers_ryzenai",
        "onnxruntime_providers_amdgpu",
        "onnxruntime_providers_vitisai",
        "onnxruntime_providers_migraphx",
        "onnxruntime_providers_webgpu",
        "onnxruntime_providers_shared",
        "onnxruntime_ryzenai",
        "onnxruntime_vitisai_ep",
        "onnxruntime",
        "onnxruntime-genai",
        "onnx_custom_ops",
        "amdgpu-ep",
    )
] + ["libvulkan.so.1", "libvulkan.so", "libonnxruntime.so.1", "libamdhip64.so"]
#: What depends on the folder that a process is in.
RELATIVE = ".:models::../workspace"

SOURCE = """
#include <stdio.h>
__attribute__((constructor)) static void ran(void) {
    FILE *mark = fopen("%s", "a");
    if (mark) { fputs("ran\\n", mark); fclose(mark); }
}
"""


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """The file that is there once the library has run."""
    return tmp_path / "mark"


@pytest.fixture
def library(tmp_path: Path, mark: Path) -> Path:
    """A shared library that leaves the mark as soon as it is loaded."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs Linux and a C compiler, to make a library that can be loaded")
    source = tmp_path / "planted.c"
    source.write_text(SOURCE % mark, encoding="utf-8")
    target = tmp_path / "planted.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", target, source], check=True)
    return target


def package_for(tiny: Path, folder: Path, provider: str) -> Path:
    """The tiny package as one for ``provider``."""
    shutil.copytree(tiny, folder)
    path = folder / "genai_config.json"
    config = json.loads(path.read_bytes())
    config["model"]["decoder"]["session_options"] = {"provider_options": [{provider: {}}]}
    path.write_text(json.dumps(config), encoding="utf-8")
    return folder


def plant(library: Path, *folders: Path) -> None:
    for folder in folders:
        folder.mkdir(exist_ok=True)
        for name in NAMES:
            shutil.copy(library, folder / name)


def run(workspace: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python code in a process of its own, in the workspace."""
    command = [sys.executable, "-I", "-c", code, *arguments]
    return subprocess.run(command, cwd=workspace, capture_output=True, text=True, check=False)


def refused(engine: RunningEngine, package: Path) -> str:
    response = engine.http.post("/load", json={"model": str(package)})
    assert response.status_code == 503, response.text
    message: str = response.json()["error"]["message"]
    return message


def test_the_library_would_run_where_the_runtime_looks(
    tiny: Path, library: Path, mark: Path, tmp_path: Path
) -> None:
    """What the engine guards against: without it, one of the providers' libraries runs."""
    workspace = tmp_path / "workspace"
    plant(library, workspace)
    opener = "import sys, onnxruntime_genai as og; og.Model(sys.argv[1])"
    said = []
    for provider in PROVIDERS:
        package = package_for(tiny, tmp_path / provider, provider)
        ended = run(workspace, opener, str(package))
        assert ended.returncode != 0
        said.append(ended.stderr)
    if not mark.exists():
        assert not any("Failed to load library" in each for each in said)
        pytest.skip("this runtime does not look for provider libraries in the current directory")


def test_the_library_would_run_if_it_were_loaded_at_all(
    library: Path, mark: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "workspace"
    plant(library, workspace)
    loading = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    assert run(workspace, loading, NAMES[0]).returncode != 0, "no place to look for it in"
    assert not mark.exists()
    monkeypatch.setenv("LD_LIBRARY_PATH", RELATIVE)
    for count, name in enumerate(NAMES, start=1):
        assert run(workspace, loading, name).returncode == 0
        assert mark.read_text(encoding="utf-8").count("ran") == count


def test_custom_operators_would_run_if_a_package_could_name_them(
    tiny: Path, library: Path, mark: Path, tmp_path: Path
) -> None:
    package = package_for(tiny, tmp_path / "package", "CPU")
    shutil.copy(library, package / "ops.so")
    path = package / "genai_config.json"
    config = json.loads(path.read_bytes())
    options = {"provider_options": [], "custom_ops_library": str(package / "ops.so")}
    config["model"]["decoder"]["session_options"] = options
    path.write_text(json.dumps(config), encoding="utf-8")
    run(tmp_path, "import sys, onnxruntime_genai as og; og.Model(sys.argv[1])", str(package))
    if not mark.exists():
        pytest.skip("this runtime loads no library of custom operators")
    mark.unlink()
    with running_engine(tmp_path / "home", tiny, EngineOptions(slots=1)) as engine:
        assert "names a library" in refused(engine, package)
    assert not mark.exists()


def test_no_planted_library_runs_in_the_engine(
    tiny: Path, library: Path, mark: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "workspace"
    packages = [
        package_for(tiny, workspace / "models" / provider, provider) for provider in PROVIDERS
    ]
    plant(library, workspace, workspace / "models", *packages)
    # The engine is started from the workspace, as an editor's server would do it.
    monkeypatch.chdir(workspace)
    # As some shells' profiles have it: a path that ends with a colon, or begins with one.
    monkeypatch.setenv("LD_LIBRARY_PATH", RELATIVE)
    monkeypatch.setenv("PATH", f"{RELATIVE}:{os.environ['PATH']}")
    with running_engine(tmp_path / "home", tiny, EngineOptions(slots=1)) as engine:
        for provider, package in zip(PROVIDERS, packages, strict=True):
            assert provider.lower() in refused(engine, package).lower()
        # Named as the workspace would name it, too.
        response = engine.http.post("/load", json={"model": str(Path("models", "RyzenAI"))})
        assert response.status_code in (404, 503)
        assert not mark.exists()
        # It still answers.
        assert engine.text("a") == engine.text("a")
    assert not mark.exists()
