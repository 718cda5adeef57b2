"""Whether a machine could run a package: machines made up of files and variables."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from fimble import system
from fimble.models.inspection import Inspection, inspect_package
from fimble.models.providers import (
    Machine,
    Refusal,
    installed_release,
    provider_refusal,
    this_machine,
)
from fimble.models.store import Package, Store
from tests.support.amd_packages import AMD_PACKAGES, make_amd_package
from tests.support.tiny import make_tiny_package

CPU = ("onnxruntime-genai", "0.18.0")
DIRECTML = ("onnxruntime-genai-directml", "0.13.1")
RYZEN_AI = ("onnxruntime-genai-directml-ryzenai", "0.11.2")
LINUX = Machine("linux", (CPU,))
WINDOWS = Machine("windows", (DIRECTML,))
RYZEN = Machine("windows", (RYZEN_AI,), "1.7.1")
PLUGIN = {"AMDGPU": Path("/opt/amd/libamdgpu-ep.so")}


def amd(folder: Path, letter: str) -> Inspection:
    return inspect_package(Store(folder / "store").find(str(make_amd_package(folder, letter))))


def tiny(folder: Path, provider: str = "") -> Inspection:
    path = make_tiny_package(folder / "tiny-coder")
    if provider:
        config = json.loads((path / "genai_config.json").read_text(encoding="utf-8"))
        config["model"]["decoder"]["session_options"]["provider_options"] = [{provider: {}}]
        (path / "genai_config.json").write_text(json.dumps(config), encoding="utf-8")
    return inspect_package(Package("tiny-coder", path))


# package, machine → words of the problem (none: it can run), words of the next step
CASES = [
    ("A", LINUX, "DirectML provider, which exists on Windows only", "fimble[directml]"),
    ("A", WINDOWS, "", ""),
    ("A", RYZEN, "", ""),
    ("A", replace(WINDOWS, runtimes=(CPU,)), "installed onnxruntime-genai does not have",
     "pip uninstall onnxruntime-genai`, then `pip install 'fimble[directml]'`"),
    ("A", replace(WINDOWS, runtimes=()), "No onnxruntime-genai is installed", "pip install"),
    ("A", replace(WINDOWS, runtimes=(CPU, DIRECTML)), "installed together", "pip uninstall"),
    ("B", LINUX, "library libamdgpu-ep.so was not found", "set AMDGPU_EP_PATH"),
    ("B", Machine("windows", (CPU,)), "library amdgpu-ep.dll was not found", "AMDGPU_EP_PATH"),
    ("B", WINDOWS, "installed onnxruntime-genai-directml 0.13.1 does not know; 0.18 does",
     "pip uninstall onnxruntime-genai-directml`, then `pip install 'onnxruntime-genai>=0.18'"),
    ("B", Machine("macos", (CPU,)), "on Windows and Linux only", "fimble model pull"),
    ("B", replace(LINUX, libraries=PLUGIN), "", ""),
    ("C", LINUX, "DirectML provider, which exists on Windows only", "fimble[directml]"),
    ("C", WINDOWS, "", ""),
    ("D", LINUX, "hybrid package", "Ryzen AI 1.7.1 environment"),
    ("D", WINDOWS, "Ryzen AI 1.7.1 runtime, which was not found", "Install Ryzen AI 1.7.1"),
    ("D", RYZEN, "", ""),
    ("D", replace(RYZEN, ryzen_ai_release="1.6"), "for Ryzen AI 1.7.1, and 1.6 is installed",
     "Install Ryzen AI 1.7.1, or pull the package that AMD made for 1.6"),
    ("D", replace(RYZEN, ryzen_ai_release="1.7.1.0"), "", ""),
    ("E", LINUX, "Ryzen AI 1.7.1 runtime, which was not found", "Install Ryzen AI 1.7.1"),
    ("E", Machine("linux", (CPU,), "1.7.1"), "", ""),
    ("E", Machine("linux", (("onnxruntime-genai", "0.11.2"),), "1.7.1"),
     "0.11.2 does not know; 0.13 does", "onnxruntime-genai>=0.13"),
    ("E", Machine("windows"), "Ryzen AI 1.7.1 runtime, which was not found", "Install Ryzen AI"),
    ("E", Machine("linux", (CPU,), "1.7"), "for Ryzen AI 1.7.1, and 1.7 is installed", "Install"),
]  # fmt: skip


@pytest.mark.parametrize(("letter", "machine", "problem", "next_step"), CASES)
def test_each_package_on_each_machine(
    tmp_path: Path, letter: str, machine: Machine, problem: str, next_step: str
) -> None:
    refusal = provider_refusal(amd(tmp_path, letter), machine)
    if not problem:
        assert refusal is None
        return
    assert refusal is not None
    assert problem in refusal.problem
    assert next_step in refusal.next_step


@pytest.mark.parametrize(
    ("provider", "machine", "problem"),
    [
        ("", LINUX, ""),
        ("CPU", WINDOWS, ""),
        ("WebGPU", LINUX, "WebGPU provider, whose plug-in is not installed"),
        ("WebGPU", replace(LINUX, plugins=frozenset({"onnxruntime-ep-webgpu"})), ""),
        ("cuda", LINUX, "the installed onnxruntime-genai does not have"),
        ("cuda", Machine("linux", (("onnxruntime-genai-cuda", "0.13.1"),)), ""),
        ("OpenVINO", LINUX, "OpenVINO, which fimble knows nothing of"),
    ],
)
def test_other_providers(tmp_path: Path, provider: str, machine: Machine, problem: str) -> None:
    refusal = provider_refusal(tiny(tmp_path, provider), machine)
    assert (problem in refusal.problem) if refusal else not problem


def test_unknown_keys_are_a_reason_only_where_the_runtime_is_known(tmp_path: Path) -> None:
    found = tiny(tmp_path)
    strange = replace(found, config=replace(found.config, unknown_keys=("search.custom",)))
    refusal = provider_refusal(strange, LINUX)
    assert isinstance(refusal, Refusal) and "refuses: search.custom" in refusal.problem
    later = replace(LINUX, runtimes=(("onnxruntime-genai", "0.19.0"),))
    assert provider_refusal(strange, later) is None
    assert provider_refusal(strange, RYZEN) is None


@pytest.mark.parametrize(
    ("place", "here", "release"),
    [
        (r"C:\Program Files\RyzenAI\1.7.1", "windows", "1.7.1"),
        ('"C:\\Program Files\\RyzenAI\\1.7.1\\"', "windows", "1.7.1"),
        ("D:/RyzenAI/1.7.1/", "windows", "1.7.1"),
        (r"C:\Program Files\RyzenAI\1.7.1\onnxruntime", "windows", "1.7.1"),
        ("/opt/ryzenai/ryzen_ai-1.7.0", "linux", "1.7.0"),
        ("/opt/ryzenai/venv", "linux", ""),
        ("", "linux", ""),
    ],
)
def test_the_installed_release_is_in_its_folders_name(
    place: str, here: system.OperatingSystem, release: str
) -> None:
    assert installed_release({"RYZEN_AI_INSTALLATION_PATH": place}, here) == release


def test_libraries_are_found_in_absolute_places_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows = system.operating_system() == "windows"
    plugin = tmp_path / ("amdgpu-ep.dll" if windows else "libamdgpu-ep.so")
    prefix = "" if windows else "lib"
    ryzen = tmp_path / "1.7.1" / "deployment" / f"{prefix}onnxruntime_providers_ryzenai"
    ryzen = ryzen.with_suffix(".dll" if windows else ".so")
    ryzen.parent.mkdir(parents=True)
    for library in (plugin, ryzen):
        library.write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    installation = {"RYZEN_AI_INSTALLATION_PATH": str(tmp_path / "1.7.1")}
    for place in (plugin, tmp_path):
        found = this_machine({"AMDGPU_EP_PATH": str(place), **installation})
        assert found.libraries == {"AMDGPU": plugin, "RyzenAI": ryzen}
        assert found.ryzen_ai_release == "1.7.1"
    for relative in (plugin.name, ".", "", "\0"):
        assert this_machine({"AMDGPU_EP_PATH": relative}).libraries == {}
    assert this_machine({}).libraries == {}, "a library in the current directory"


def test_amds_names_tell_hybrid_from_npu() -> None:
    """The fixtures agree with AMD's own names of the repositories."""
    names = {letter: PurePosixPath(row.repo).name for letter, row in AMD_PACKAGES.items()}
    assert names["D"].endswith("_hybrid") and "_npu_" in names["E"]
