"""Which onnxruntime-genai is installed, whether it can be imported, and what it can do.

The import happens in a process of its own: a native crash must not take the doctor along.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fimble import system
from fimble.doctor.checks import Check
from fimble.doctor.devices import Device, version_numbers
from fimble.doctor.programs import ProgramOutput, run_program
from fimble.models.runtimes import DISTRIBUTIONS, NO_TELEMETRY

__all__ = ["ImportFacts", "install_line", "parse_import", "probe_import", "runtime_checks"]

#: The oldest release that the engine is tested with.
_LEAST = "0.11.2"
_NVIDIA = "10de"
_MARK = "fimble-runtime "
_ASK = (
    "import json, os\n"
    f"os.environ.update({NO_TELEMETRY!r})\n"
    "import onnxruntime_genai as og\n"
    # Of the others it says what it was compiled with, which is not what it has.
    "names = ('dml', 'cuda')\n"
    "asked = {n: getattr(og, f'is_{n}_available', None) for n in names}\n"
    "has = [n for n, is_there in asked.items() if is_there is not None and is_there()]\n"
    f"print({_MARK!r} + json.dumps({{'version': og.__version__, 'providers': has}}))\n"
)


@dataclass(frozen=True, slots=True)
class ImportFacts:
    """``providers`` are those that are built in, but for the CPU's. ``problem`` is empty where
    the import worked.
    """

    version: str = ""
    providers: tuple[str, ...] = ()
    problem: str = ""


def probe_import(cwd: Path) -> ImportFacts:
    """Imports the runtime as the engine would. ``cwd`` must be a private folder, since
    Python and the runtime look there for what they load.
    """
    return parse_import(run_program([sys.executable, "-c", _ASK], timeout=90.0, cwd=cwd))


def parse_import(said: ProgramOutput) -> ImportFacts:
    """Out of what the importing process printed, among whatever else."""
    for line in said.text.splitlines():
        if line.startswith(_MARK):
            try:
                data = json.loads(line.removeprefix(_MARK))
                return ImportFacts(str(data["version"]), tuple(map(str, data["providers"])))
            except (ValueError, KeyError, TypeError):
                break
    lines = [line.strip() for line in said.errors.splitlines() if line.strip()]
    if said.problem:
        return ImportFacts(problem=said.problem)
    if lines:
        return ImportFacts(problem=lines[-1])
    # As Windows writes it: 0xC0000005 is an access violation.
    code = said.code or 0
    shown = f"0x{code & 0xFFFFFFFF:08X}" if abs(code) > 255 else str(code)
    return ImportFacts(problem=f"the process ended with code {shown}")


def runtime_checks(
    runtimes: Sequence[tuple[str, str]],
    imported: ImportFacts | None,
    here: system.OperatingSystem,
    devices: Sequence[Device] = (),
    release: str = "",
) -> list[Check]:
    """``runtimes`` are the installed (name, version) pairs; ``release`` is Ryzen AI's."""
    found = [(name, version) for name, version in runtimes if name in DISTRIBUTIONS]
    if not found:
        step = install_line(here, devices, release)
        return [Check("runtime", "fail", "no onnxruntime-genai is installed", step)]
    if len(found) > 1:
        listed = " and ".join(f"{name} {version}" for name, version in sorted(found))
        names = " ".join(sorted(name for name, _ in found))
        step = f"Run `pip uninstall -y {names}`. {install_line(here, devices, release)}"
        return [
            Check("runtime", "fail", f"{listed} overwrite each other's files", step),
        ]
    ((name, version),) = found
    checks = [_version_check(name, version)]
    if imported is not None:
        checks.append(_import_check(name, imported, here))
    return checks


def _version_check(name: str, version: str) -> Check:
    if version_numbers(version) < version_numbers(_LEAST):
        return Check(
            "runtime",
            "warn",
            f"{name} {version} is older than {_LEAST}, the oldest that fimble is tested with",
            f"Run `pip install --upgrade {name}`.",
        )
    return Check("runtime", "ok", f"{name} {version}")


def _import_check(name: str, imported: ImportFacts, here: system.OperatingSystem) -> Check:
    if not imported.problem:
        providers = ", ".join(["CPU", *(each.upper() for each in imported.providers)])
        return Check("runtime import", "ok", f"works; providers built in: {providers}")
    step = f"Run `pip install --force-reinstall {name}`."
    if here == "windows" and "DLL load failed" in imported.problem:
        step = f"Install Microsoft's Visual C++ Redistributable (x64). If that is there: {step}"
    return Check("runtime import", "fail", f"cannot be imported: {imported.problem}", step)


def install_line(
    here: system.OperatingSystem, devices: Sequence[Device] = (), release: str = ""
) -> str:
    """How to get the runtime that fits this machine, in a sentence."""
    if release:
        return (
            f"Start fimble inside AMD's environment (`conda activate ryzen-ai-{release}`, then "
            "`pip install fimble`), or run `pip install 'fimble[directml]'` here."
        )
    gpus = {device.vendor for device in devices if device.kind == "gpu"}
    extra = "directml" if here == "windows" and gpus else "cpu"
    if here == "linux" and _NVIDIA in gpus:
        extra = "cuda"
    return f"Run `pip install 'fimble[{extra}]'`."
