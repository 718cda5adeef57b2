"""Provider libraries, Ryzen AI's release, Vulkan: found in known places, judged by need."""

from __future__ import annotations

from pathlib import Path

import pytest

from fimble.doctor.checks import Check
from fimble.doctor.probe_devices import DeviceFacts
from fimble.doctor.provider_files import (
    EnvironmentPath,
    environment_paths,
    find_releases,
    library_checks,
    ryzen_ai_checks,
    vulkan_check,
)
from fimble.doctor.tool_output import VulkanDevice
from fimble.models.providers import Machine
from tests.doctor.test_devices import lines, needing

AMDS = ("onnxruntime-genai-directml-ryzenai", "0.11.2")


def words(checks: list[Check]) -> str:
    return " ".join(f"{check.detail} {check.next_step}" for check in checks)


# --- variables -----------------------------------------------------------------------------


def test_variables_that_say_where_a_provider_is(tmp_path: Path) -> None:
    environ = {
        "AMDGPU_EP_PATH": f'"{tmp_path}"',
        "RYZENAI_EP_PATH": "ep.dll",
        "RYZEN_AI_INSTALLATION_PATH": str(tmp_path / "missing"),
        "PATH": "/usr/bin",
    }
    assert environment_paths(environ) == [
        EnvironmentPath("AMDGPU_EP_PATH", str(tmp_path), True, True),
        EnvironmentPath("RYZENAI_EP_PATH", "ep.dll", False, False),
        EnvironmentPath("RYZEN_AI_INSTALLATION_PATH", str(tmp_path / "missing"), True, False),
    ]
    checks = library_checks(Machine("linux"), environment_paths(environ), needing("RyzenAI"))
    assert lines(checks) == [
        ("AMDGPU_EP_PATH", "ok"),
        ("RYZENAI_EP_PATH", "fail"),
        ("RYZEN_AI_INSTALLATION_PATH", "fail"),
        ("RyzenAI library", "fail"),
    ]
    assert "no absolute path" in words(checks) and "does not exist" in words(checks)


def test_a_variable_with_a_nul_is_no_crash() -> None:
    (path,) = environment_paths({"AMDGPU_EP_PATH": "/x\0y"})
    assert not path.exists


# --- libraries -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("here", "needed", "library"),
    [
        ("windows", "AMDGPU", "amdgpu-ep.dll"),
        ("linux", "AMDGPU", "libamdgpu-ep.so"),
        ("windows", "RyzenAI", "onnxruntime_providers_ryzenai.dll"),
        ("linux", "RyzenAI", "libonnxruntime_providers_ryzenai.so"),
        ("linux", "WebGPU", "pip install onnxruntime-ep-webgpu"),
    ],
)
def test_a_library_that_is_needed_and_missing(here: str, needed: str, library: str) -> None:
    machine = Machine(here)  # type: ignore[arg-type]
    assert library_checks(machine, [], needing()) == []
    checks = library_checks(machine, [], needing(needed))
    assert lines(checks) == [(f"{needed} library", "fail")]
    assert library in words(checks)


def test_libraries_that_are_there() -> None:
    machine = Machine("linux", libraries={"AMDGPU": Path("/opt/libamdgpu-ep.so")})
    checks = library_checks(machine, [], needing("AMDGPU"), webgpu="1.2.3")
    assert lines(checks) == [("AMDGPU library", "ok"), ("WebGPU library", "ok")]
    assert "/opt/libamdgpu-ep.so" in words(checks) and "1.2.3" in words(checks)


# --- Ryzen AI ------------------------------------------------------------------------------


def test_releases_are_found_by_variable_environment_and_folder(tmp_path: Path) -> None:
    for name in ("1.6.1", "1.10.0", "1.7.1", "docs"):
        (tmp_path / "Programs" / "RyzenAI" / name).mkdir(parents=True)
        (tmp_path / "opt/ryzenai" / name).mkdir(parents=True)
    programs = {"PROGRAMFILES": str(tmp_path / "Programs")}
    assert find_releases("windows", programs) == ["1.10.0", "1.7.1", "1.6.1"]
    named = {**programs, "RYZEN_AI_INSTALLATION_PATH": "C:\\Program Files\\RyzenAI\\1.6.1\\"}
    assert find_releases("windows", named) == ["1.6.1", "1.10.0", "1.7.1"]
    inside = {**programs, "CONDA_DEFAULT_ENV": "ryzen-ai-1.7.1"}
    assert find_releases("windows", inside) == ["1.7.1", "1.10.0", "1.6.1"]
    assert find_releases("linux", {}, tmp_path) == ["1.10.0", "1.7.1", "1.6.1"]
    assert find_releases("linux", {}, tmp_path / "nowhere") == []
    assert find_releases("windows", {"PROGRAMFILES": "relative"}) == []
    assert find_releases("macos", programs, tmp_path) == []


MADE_FOR = {"hybrid": "1.7.1", "coder": ""}


@pytest.mark.parametrize(
    ("releases", "needed", "expected", "says"),
    [
        ([], "", [], ""),
        ([], "RyzenAI", [("ryzen ai", "fail")], "Install Ryzen AI 1.7.1"),
        (["1.7.1"], "RyzenAI", [("ryzen ai", "ok")], "release 1.7.1"),
        (["1.7.1.0"], "RyzenAI", [("ryzen ai", "ok")], "release 1.7.1.0"),
        (["1.7.0"], "RyzenAI", [("ryzen ai", "fail")], "hybrid was made for 1.7.1"),
        (["1.8.0"], "", [("ryzen ai", "warn")], "does not load on another"),
        (["1.8.0", "1.7.1"], "RyzenAI", [("ryzen ai", "fail")], "conda activate ryzen-ai-1.7.1"),
    ],
)
def test_the_release_against_what_packages_were_made_for(
    releases: list[str], needed: str, expected: list[tuple[str, str]], says: str
) -> None:
    machine = Machine("windows", runtimes=(AMDS,))
    checks = ryzen_ai_checks(releases, MADE_FOR, machine, needing(needed))
    assert lines(checks) == expected
    assert says in words(checks)


def test_another_environment_than_amds_is_named() -> None:
    machine = Machine("windows", runtimes=(("onnxruntime-genai-directml", "0.13.1"),))
    checks = ryzen_ai_checks(["1.7.1"], MADE_FOR, machine, needing("RyzenAI"))
    assert lines(checks) == [("ryzen ai", "ok"), ("ryzen ai environment", "fail")]
    assert "conda activate ryzen-ai-1.7.1" in words(checks)


# --- Vulkan --------------------------------------------------------------------------------

RADV = VulkanDevice("Radeon", "radv")
SOFTWARE = VulkanDevice("llvmpipe", "llvmpipe", software=True)


@pytest.mark.parametrize(
    ("library", "devices", "needed", "expected"),
    [
        (None, None, "WebGPU", []),
        (False, None, "", [("vulkan", "ok")]),
        (False, None, "WebGPU", [("vulkan", "fail")]),
        (True, None, "WebGPU", [("vulkan", "ok")]),
        (True, (RADV,), "WebGPU", [("vulkan", "ok")]),
        (True, (SOFTWARE,), "WebGPU", [("vulkan", "fail")]),
        (True, (SOFTWARE, RADV), "WebGPU", [("vulkan", "ok")]),
        (True, (), "WebGPU", [("vulkan", "fail")]),
        (True, (), "", [("vulkan", "ok")]),
    ],
)
def test_vulkan(
    library: bool | None,
    devices: tuple[VulkanDevice, ...] | None,
    needed: str,
    expected: list[tuple[str, str]],
) -> None:
    facts = DeviceFacts(vulkan_library=library, vulkan=devices)
    assert lines(vulkan_check(facts, needing(needed))) == expected
