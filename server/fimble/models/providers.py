"""Whether this machine has what a package's provider needs, and if not, what to do.

Decides from files, environment variables and the installed distributions alone: nothing is
loaded, so a library that is there may still be broken. Devices and drivers are looked at by
``fimble doctor``; here it is about the package in hand.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath

from fimble import system
from fimble.errors import RuntimeMissing
from fimble.models.catalogue import DEFAULT_MODEL
from fimble.models.config_keys import KNOWN_UP_TO
from fimble.models.inspection import Inspection
from fimble.models.runtimes import Runtime, find_runtime, installed_runtimes

__all__ = [
    "Machine",
    "Refusal",
    "installed_release",
    "plugin_libraries",
    "provider_refusal",
    "this_machine",
]

_RYZEN_AI = "onnxruntime-genai-directml-ryzenai"
_WEBGPU = "onnxruntime-ep-webgpu"
_AMDGPU = "onnxruntime-ep-amdgpu"
_OWN_RUNTIMES: dict[str, tuple[tuple[str, ...], str]] = {
    # provider: (distributions that have it, the extra that installs one of them)
    "DML": (
        ("onnxruntime-genai-directml", _RYZEN_AI, "onnxruntime-genai-winml"),
        "directml",
    ),
    "cuda": (("onnxruntime-genai-cuda",), "cuda"),
}
#: Releases up to which the runtime's own builds lack a provider, and one that has it. Looked up
#: in the wheels of 0.11.2, 0.13.1 and 0.18.0.
_LACKING = {"RyzenAI": ((0, 11), "0.13"), "AMDGPU": ((0, 13), "0.18")}
_ELSEWHERE = f"Here, take a package for this machine: `fimble model pull {DEFAULT_MODEL}`."


@dataclass(frozen=True, slots=True)
class Machine:
    """What of this machine decides whether a package can run.

    ``runtimes`` are (name, version) pairs of onnxruntime-genai distributions.
    ``ryzen_ai_release`` is empty where none is installed. ``libraries`` are the provider
    libraries that were found, by the runtime's name of the provider; ``plugins`` the
    installed distributions that carry one.
    """

    system: system.OperatingSystem
    runtimes: tuple[tuple[str, str], ...] = ()
    ryzen_ai_release: str = ""
    libraries: Mapping[str, Path] = field(default_factory=dict)
    plugins: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a package cannot run here, and what to do."""

    problem: str
    next_step: str


def this_machine(environ: Mapping[str, str] = os.environ) -> Machine:
    """Looks at the environment and at known places; never at the current directory."""
    here = system.operating_system()
    return Machine(
        system=here,
        runtimes=tuple(installed_runtimes()),
        ryzen_ai_release=installed_release(environ, here),
        libraries=_libraries(environ, here),
        plugins=frozenset(name for name in (_WEBGPU,) if _is_installed(name)),
    )


def plugin_libraries(environ: Mapping[str, str] = os.environ) -> dict[str, Path]:
    """The provider libraries in known absolute places, by the runtime's name of the provider.

    What a variable says counts only where it is an absolute path.
    """
    return _libraries(environ, system.operating_system())


def provider_refusal(found: Inspection, machine: Machine) -> Refusal | None:
    """The first reason why the runtime here could not run the package; None if none is known."""
    # Where the system is wrong, installing something would not help.
    refusal = _system_refusal(found, machine)
    if refusal is not None:
        return refusal
    try:
        runtime = find_runtime(machine.runtimes)
    except RuntimeMissing as error:
        if found.provider.canonical == "RyzenAI" and not machine.runtimes:
            return _no_ryzen_ai(found)
        return Refusal(error.message, error.next_step)
    return (
        _runtime_refusal(found, runtime)
        or _library_refusal(found, machine)
        or _unknown_keys(found, runtime)
    )


def installed_release(environ: Mapping[str, str], here: system.OperatingSystem) -> str:
    """The Ryzen AI release by its installation's folder, as "1.7.1"; empty if there is none."""
    place = environ.get("RYZEN_AI_INSTALLATION_PATH", "").strip().strip('"')
    flavour: type[PurePath] = PureWindowsPath if here == "windows" else PurePosixPath
    for part in reversed(flavour(place).parts):
        found = re.fullmatch(r"(?:ryzen[-_]?ai[-_])?v?(\d+(?:\.\d+){1,3})", part, re.IGNORECASE)
        if found:
            return found[1]
    return ""


# --- refusals ------------------------------------------------------------------------------


def _title(provider: str) -> str:
    return "DirectML" if provider == "DML" else provider


def _system_refusal(found: Inspection, machine: Machine) -> Refusal | None:
    provider = found.provider.canonical
    if provider == "DML" and machine.system != "windows":
        return Refusal(
            "It is made for the DirectML provider, which exists on Windows only.",
            f"Use it on Windows, with `pip install 'fimble[directml]'`. {_ELSEWHERE}",
        )
    if provider in ("AMDGPU", "RyzenAI") and machine.system not in ("windows", "linux"):
        return Refusal(
            f"It is made for AMD's provider {provider}, which exists on Windows and Linux only.",
            _ELSEWHERE,
        )
    if provider == "RyzenAI" and _is_hybrid(found) and machine.system != "windows":
        return Refusal(
            "It is a hybrid package (NPU and GPU together), and those run on Windows only; on "
            "Linux Ryzen AI has packages for the NPU alone.",
            f"Use it on Windows, inside AMD's Ryzen AI{_release(found)} environment. {_ELSEWHERE}",
        )
    return None


def _runtime_refusal(found: Inspection, runtime: Runtime) -> Refusal | None:
    """Where the installed distribution, or its release, does not have the provider."""
    provider = found.provider.canonical
    distributions, extra = _OWN_RUNTIMES.get(provider, ((runtime.name,), ""))
    if runtime.name not in distributions:
        return Refusal(
            f"It is made for the provider {_title(provider)}, which the installed "
            f"{runtime.name} does not have.",
            f"Run `pip uninstall {runtime.name}`, then `pip install 'fimble[{extra}]'`.",
        )
    lacking, having = _LACKING.get(provider, (None, ""))
    if lacking and runtime.name != _RYZEN_AI and _numbers(runtime.version)[:2] <= lacking:
        return Refusal(
            f"It is made for the provider {provider}, which the installed {runtime.name} "
            f"{runtime.version} does not know; {having} does.",
            f"Run `pip uninstall {runtime.name}`, then "
            f"`pip install 'onnxruntime-genai>={having}'`.",
        )
    return None


def _library_refusal(found: Inspection, machine: Machine) -> Refusal | None:
    """Where a provider that comes as a library of its own is not there."""
    provider = found.provider.canonical
    if provider == "RyzenAI":
        return _ryzen_ai_refusal(found, machine)
    if provider == "AMDGPU" and provider not in machine.libraries:
        library = "amdgpu-ep.dll" if machine.system == "windows" else "libamdgpu-ep.so"
        return Refusal(
            f"It is made for AMD's plug-in provider AMDGPU, whose library {library} was not found.",
            f"Install AMD's GPU provider and set AMDGPU_EP_PATH to the full path of {library}. "
            + _ELSEWHERE,
        )
    if provider == "WebGPU" and _WEBGPU not in machine.plugins:
        return Refusal(
            "It is made for the WebGPU provider, whose plug-in is not installed.",
            f"Run `pip install {_WEBGPU}`.",
        )
    if provider not in ("CPU", "AMDGPU", "WebGPU", *_OWN_RUNTIMES):
        return Refusal(
            f"It is made for the provider {provider}, which fimble knows nothing of.",
            f"Try it with the runtime that its maker names. {_ELSEWHERE}",
        )
    return None


def _is_hybrid(found: Inspection) -> bool:
    options = found.provider.options
    hybrid = any(key.startswith("hybrid_opt_") for key in options)
    return hybrid and options.get("hybrid_opt_token_backend", "").lower() != "npu"


def _release(found: Inspection) -> str:
    return f" {found.release}" if found.release else ""


def _ryzen_ai_refusal(found: Inspection, machine: Machine) -> Refusal | None:
    if not machine.ryzen_ai_release and "RyzenAI" not in machine.libraries:
        return _no_ryzen_ai(found)
    installed = machine.ryzen_ai_release
    if found.release and installed and _numbers(found.release) != _numbers(installed):
        return Refusal(
            f"It is made for Ryzen AI {found.release}, and {installed} is installed; a package "
            "for one release does not load on another.",
            f"Install Ryzen AI {found.release}, or pull the package that AMD made for {installed}.",
        )
    return None


def _no_ryzen_ai(found: Inspection) -> Refusal:
    return Refusal(
        f"It is made for AMD's Ryzen AI{_release(found)} runtime, which was not found here.",
        f"Install Ryzen AI{_release(found)} from AMD and start fimble inside its environment "
        f'(README, "AMD hardware"). {_ELSEWHERE}',
    )


def _unknown_keys(found: Inspection, runtime: Runtime) -> Refusal | None:
    """Only where the runtime is one whose keys we know: AMD's own may take more."""
    keys = found.config.unknown_keys
    later = _numbers(runtime.version)[:2] > KNOWN_UP_TO
    if not keys or runtime.name == _RYZEN_AI or later:
        return None
    listed = ", ".join(keys[:5]) + (" and others" if len(keys) > 5 else "")
    return Refusal(
        f"Its genai_config.json has settings that onnxruntime-genai {runtime.version} refuses: "
        f"{listed}.",
        "Use the runtime that the package was made for, or remove the settings.",
    )


def _numbers(version: str) -> tuple[int, ...]:
    """ "1.7" and "1.7.0" are the same release."""
    numbers = [int(part[:6]) for part in re.findall(r"\d+", version)[:4]]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


# --- what is there -------------------------------------------------------------------------


def _libraries(environ: Mapping[str, str], here: system.OperatingSystem) -> dict[str, Path]:
    windows = here == "windows"
    amdgpu = "amdgpu-ep.dll" if windows else "libamdgpu-ep.so"
    ryzen = (
        "onnxruntime_providers_ryzenai.dll" if windows else "libonnxruntime_providers_ryzenai.so"
    )
    installation = _absolute(environ.get("RYZEN_AI_INSTALLATION_PATH", ""))
    inside = ["", "deployment", "deployment/lib", "bin", "lib", "onnxruntime/bin"]
    inside.append("onnxruntime/lib")
    webgpu = {
        "windows": "onnxruntime_providers_webgpu.dll",
        "macos": "libonnxruntime_providers_webgpu.dylib",
    }.get(here, "libonnxruntime_providers_webgpu.so")
    places: dict[str, list[Path | None]] = {
        "AMDGPU": [
            _at(environ.get("AMDGPU_EP_PATH", ""), amdgpu),
            *_in_distribution(_AMDGPU, f"onnxruntime_ep_amdgpu/{amdgpu}"),
        ],
        "RyzenAI": [
            _at(environ.get("RYZENAI_EP_PATH", ""), ryzen),
            *(installation / each / ryzen for each in inside if installation),
            *_in_distribution(_RYZEN_AI, f"onnxruntime_genai/{ryzen}"),
        ],
        "WebGPU": [*_in_distribution(_WEBGPU, f"onnxruntime_ep_webgpu/{webgpu}")],
    }
    found: dict[str, Path] = {}
    for provider, candidates in places.items():
        for each in candidates:
            if each is not None and each.is_file():
                found.setdefault(provider, each)
    return found


def _absolute(text: str) -> Path | None:
    """A relative path is none: it would depend on the folder that we happen to be in."""
    path = Path(text.strip().strip('"')) if text.strip() and "\0" not in text else None
    return path if path is not None and path.is_absolute() else None


def _at(text: str, library: str) -> Path | None:
    path = _absolute(text)
    return path / library if path is not None and path.is_dir() else path


def _in_distribution(name: str, file: str) -> list[Path]:
    """A file of an installed distribution; nothing of the distribution is imported."""
    try:
        path = Path(str(metadata.distribution(name).locate_file(file)))
    except metadata.PackageNotFoundError:
        return []
    return [path] if path.is_absolute() else []


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True
