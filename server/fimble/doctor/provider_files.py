"""Provider libraries and AMD's Ryzen AI software: where they are, and which release it is.

Looks at known absolute places and at the environment's variables; loads nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path, PurePath

from fimble import system
from fimble.doctor.checks import Check, Status
from fimble.doctor.devices import Severity, version_numbers
from fimble.doctor.probe_devices import DeviceFacts
from fimble.models.providers import Machine, installed_release, this_machine

__all__ = [
    "EnvironmentPath",
    "environment_paths",
    "find_releases",
    "library_checks",
    "look_at_machine",
    "ryzen_ai_checks",
    "vulkan_check",
]

_VARIABLES = ("AMDGPU_EP_PATH", "RYZENAI_EP_PATH", "RYZEN_AI_INSTALLATION_PATH")
_AMDS_RUNTIME = "onnxruntime-genai-directml-ryzenai"
_WEBGPU = "onnxruntime-ep-webgpu"


@dataclass(frozen=True, slots=True)
class EnvironmentPath:
    """A variable that should hold an absolute path; ``exists`` if there is something."""

    variable: str
    value: str
    absolute: bool
    exists: bool


def environment_paths(environ: Mapping[str, str] = os.environ) -> list[EnvironmentPath]:
    """The variables that say where a provider is, as far as they are set."""
    found = []
    for variable in _VARIABLES:
        value = environ.get(variable, "").strip().strip('"')
        if value:
            path = Path(value)
            found.append(EnvironmentPath(variable, value, path.is_absolute(), _exists(path)))
    return found


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def find_releases(
    here: system.OperatingSystem, environ: Mapping[str, str] = os.environ, root: Path = Path("/")
) -> list[str]:
    """The Ryzen AI releases that are installed, the one in use first."""
    named = installed_release(environ, here)
    conda = _release_of(environ.get("CONDA_DEFAULT_ENV", ""), here)
    folders: list[PurePath] = []
    if here == "windows":
        programs = environ.get("PROGRAMFILES", "")
        folders = _inside(Path(programs, "RyzenAI")) if Path(programs).is_absolute() else []
    elif here == "linux":
        folders = _inside(root / "opt/ryzenai")
    others = sorted((_release_of(each.name, here) for each in folders), key=version_numbers)
    return list(dict.fromkeys(filter(None, [named, conda, *reversed(others)])))


def _release_of(name: str, here: system.OperatingSystem) -> str:
    return installed_release({"RYZEN_AI_INSTALLATION_PATH": name}, here)


def _inside(folder: Path) -> list[PurePath]:
    try:
        return sorted(each for each in folder.iterdir() if each.is_dir())
    except OSError:
        return []


def look_at_machine(releases: Sequence[str]) -> Machine:
    """This machine for the question whether a package can run, with the release in use."""
    machine = this_machine()
    found = machine.ryzen_ai_release or next(iter(releases), "")
    return replace(machine, ryzen_ai_release=found)


# --- judging -------------------------------------------------------------------------------


def library_checks(
    machine: Machine, paths: Sequence[EnvironmentPath], severity: Severity, webgpu: str = ""
) -> list[Check]:
    """Lines about libraries of providers that the runtime does not have built in.

    ``webgpu`` is the version of WebGPU's plug-in, empty where it is not installed.
    """
    checks = [_path_check(path, severity) for path in paths]
    for provider, library in machine.libraries.items():
        checks.append(Check(f"{provider} library", "ok", str(library)))
    for provider in ("AMDGPU", "RyzenAI"):
        status = severity(provider)
        if status != "ok" and provider not in machine.libraries:
            checks.append(_missing(provider, status, machine.system))
    if webgpu:
        checks.append(Check("WebGPU library", "ok", f"{_WEBGPU} {webgpu}"))
    elif severity("WebGPU") != "ok":
        checks.append(
            Check(
                "WebGPU library",
                severity("WebGPU"),
                "WebGPU's plug-in is not installed",
                f"Run `pip install {_WEBGPU}`.",
            )
        )
    return checks


def installed_version(name: str) -> str:
    """The version of an installed distribution; empty if it is not."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _path_check(path: EnvironmentPath, severity: Severity) -> Check:
    provider = "AMDGPU" if path.variable.startswith("AMDGPU") else "RyzenAI"
    doubt: Status = "fail" if severity(provider) == "fail" else "warn"
    if not path.absolute:
        return Check(
            path.variable,
            doubt,
            f"{path.value!r} is no absolute path, so it means another file in each folder",
            "Set it to the full path.",
        )
    if not path.exists:
        return Check(path.variable, doubt, f"{path.value} does not exist", "Correct or unset it.")
    return Check(path.variable, "ok", path.value)


def _missing(provider: str, status: Status, here: system.OperatingSystem) -> Check:
    windows = here == "windows"
    if provider == "AMDGPU":
        library = "amdgpu-ep.dll" if windows else "libamdgpu-ep.so"
        step = f"Install AMD's GPU provider, and set AMDGPU_EP_PATH to the full path of {library}."
    else:
        ending = "dll" if windows else "so"
        library = f"{'' if windows else 'lib'}onnxruntime_providers_ryzenai.{ending}"
        step = "Install AMD's Ryzen AI software and start fimble inside its environment."
    return Check(f"{provider} library", status, f"{library} was not found", step)


def ryzen_ai_checks(
    releases: Sequence[str], made_for: Mapping[str, str], machine: Machine, severity: Severity
) -> list[Check]:
    """The installed release against those that packages were made for (name → release)."""
    if not releases:
        status = severity("RyzenAI")
        if status == "ok":
            return []
        wanted = ", ".join(sorted(set(filter(None, made_for.values())))) or "1.7"
        return [
            Check(
                "ryzen ai",
                status,
                "AMD's Ryzen AI software was not found",
                f"Install Ryzen AI {wanted} from AMD and start fimble inside its environment.",
            )
        ]
    used, *others = releases
    more = f" (also there: {', '.join(others)})" if others else ""
    mismatched = {
        name: release for name, release in made_for.items() if release and not _same(release, used)
    }
    if mismatched:
        name, release = next(iter(mismatched.items()))
        use_other = next((each for each in others if _same(each, release)), "")
        return [
            Check(
                "ryzen ai",
                "fail" if severity("RyzenAI") == "fail" else "warn",
                f"release {used} is in use{more}, and {name} was made for {release}; a package "
                "for one release does not load on another",
                f"Run `conda activate ryzen-ai-{use_other}` first."
                if use_other
                else f"Install Ryzen AI {release}, or pull the package that AMD made for {used}.",
            )
        ]
    checks = [Check("ryzen ai", "ok", f"release {used}{more}")]
    if severity("RyzenAI") != "ok" and _AMDS_RUNTIME not in dict(machine.runtimes):
        checks.append(
            Check(
                "ryzen ai environment",
                severity("RyzenAI"),
                f"this Python is not AMD's: it does not have {_AMDS_RUNTIME}",
                f"Run `conda activate ryzen-ai-{used}`, then `pip install fimble` there.",
            )
        )
    return checks


def _same(one: str, other: str) -> bool:
    """ "1.7" and "1.7.0" are the same release."""

    def numbers(version: str) -> tuple[int, ...]:
        found = list(version_numbers(version))
        while found and found[-1] == 0:
            found.pop()
        return tuple(found)

    return numbers(one) == numbers(other)


def vulkan_check(facts: DeviceFacts, severity: Severity) -> list[Check]:
    """Whether WebGPU would find a device, on Linux; elsewhere it needs no Vulkan."""
    if facts.vulkan_library is None:
        return []
    status = severity("WebGPU")
    if not facts.vulkan_library:
        if status == "ok":
            return [Check("vulkan", "ok", "not installed; no installed package needs it")]
        return [
            Check(
                "vulkan",
                status,
                "libvulkan.so.1 is not installed",
                "Install your distribution's Vulkan loader (libvulkan1) and driver.",
            )
        ]
    if facts.vulkan is None:
        return [Check("vulkan", "ok", "libvulkan.so.1 is there (vulkaninfo would tell more)")]
    real = [each for each in facts.vulkan if not each.software]
    listed = ", ".join(f"{each.name} ({each.driver})" for each in facts.vulkan) or "no device"
    if real or status == "ok":
        return [Check("vulkan", "ok", listed)]
    step = "Install the GPU's Vulkan driver (mesa-vulkan-drivers)."
    return [Check("vulkan", status, f"no GPU among its devices: {listed}", step)]
