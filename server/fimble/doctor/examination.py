"""Looks at this machine and says what is in the way of fimble: ``fimble doctor``.

Probes first, several at once since some take seconds; then what they found is judged.
Changes nothing, starts no engine, loads no model, asks nothing of the network.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import fimble
from fimble import system
from fimble.doctor.checks import Check, Report
from fimble.doctor.devices import (
    AMD_GPU,
    Severity,
    gpu_checks,
    memory_lock_check,
    npu_checks,
)
from fimble.doctor.editors import FoundClient, editor_check, find_clients
from fimble.doctor.engine_state import EngineFacts, engine_check, look_at_engine
from fimble.doctor.machine import home_check, look_at_system, machine_checks
from fimble.doctor.packages import StoreFacts, look_at_packages, package_checks, severity_of
from fimble.doctor.probe_devices import DeviceFacts, look_for_devices
from fimble.doctor.provider_files import (
    environment_paths,
    find_releases,
    installed_version,
    library_checks,
    look_at_machine,
    ryzen_ai_checks,
    vulkan_check,
)
from fimble.doctor.runtime import ImportFacts, probe_import, runtime_checks
from fimble.models.device_memory import find_gpus, free_memory
from fimble.models.report import gib
from fimble.models.runtimes import installed_runtimes
from fimble.models.store import Store

__all__ = ["examine"]

Found = TypeVar("Found")


def examine() -> Report:
    """All checks of this machine. Takes a few seconds."""
    here = system.operating_system()
    look = _Looks()
    runtimes = installed_runtimes()
    with ThreadPoolExecutor() as pool:
        looking = pool.submit(look, "devices", lambda: look_for_devices(here), DeviceFacts())
        importing = pool.submit(look, "runtime import", lambda: _import(bool(runtimes)), None)
        asking = pool.submit(look, "engine", look_at_engine, EngineFacts())
        store = look("models", lambda: look_at_packages(Store()), StoreFacts())
        facts, imported, engine = looking.result(), importing.result(), asking.result()

    releases = find_releases(here)
    machine = look_at_machine(releases)
    machine_facts = look_at_system(facts.os)
    severity = severity_of(store.packages)
    made_for = {p.name: p.inspection.release for p in store.packages if p.inspection is not None}
    nobody: list[FoundClient] = []
    clients = look("editors", lambda: find_clients(Path.home(), here), nobody)
    unknown: list[Check] = []
    gpu_memory = look("gpu memory", lambda: _gpu_memory(facts), unknown)
    checks = [
        *machine_checks(machine_facts),
        home_check(machine_facts),
        *runtime_checks(runtimes, imported, here, facts.devices, next(iter(releases), "")),
        *npu_checks(facts.devices, severity, facts.nodes),
        *gpu_checks(facts.devices, severity, facts.nodes),
        *gpu_memory,
        *_linux_only(facts, severity),
        *_tools(facts),
        *library_checks(
            machine, environment_paths(), severity, installed_version("onnxruntime-ep-webgpu")
        ),
        *ryzen_ai_checks(releases, made_for, machine, severity),
        *package_checks(store, machine, functools.cache(free_memory)),
        engine_check(engine),
        editor_check(clients),
        *look.failed,
    ]
    return Report(tuple(checks), fimble.__version__)


class _Looks:
    """Looks at one thing after the other; ``failed`` has a line for each that could not be."""

    def __init__(self) -> None:
        self.failed: list[Check] = []

    def __call__(self, name: str, probe: Callable[[], Found], otherwise: Found) -> Found:
        try:
            return probe()
        except Exception as error:  # noqa: BLE001
            # A machine is full of surprises: one must not hide what the others saw.
            said = f"could not be looked at: {type(error).__name__}: {error}"
            step = "This is a fault of fimble's; please report it with this line."
            self.failed.append(Check(name, "fail", said, step))
            return otherwise


def _gpu_memory(facts: DeviceFacts) -> list[Check]:
    if not any(device.vendor == AMD_GPU for device in facts.devices):
        return []
    listed = [
        f"{gpu.name}: {gib(gpu.own_free)} free of {gib(gpu.own_total)}"
        + (f", and {gib(gpu.shared_free)} of the system's" if gpu.integrated else "")
        for gpu in find_gpus()
    ]
    return [Check("gpu memory", "ok", "; ".join(listed) or "the driver does not say")]


def _import(installed: bool) -> ImportFacts | None:
    if not installed:
        return None
    # Not the current directory: the runtime loads libraries from there.
    with tempfile.TemporaryDirectory(prefix="fimble-doctor-", ignore_cleanup_errors=True) as own:
        return probe_import(Path(own))


def _linux_only(facts: DeviceFacts, severity: Severity) -> list[Check]:
    if facts.nodes is None:
        return []
    limit = memory_lock_check(system.memory_lock_limit(), facts.devices, severity)
    return [limit, *vulkan_check(facts, severity)]


def _tools(facts: DeviceFacts) -> list[Check]:
    """What the makers' own tools say, as far as they are installed."""
    checks = []
    if facts.xrt is not None:
        versions = {
            "XRT": facts.xrt.xrt,
            "driver": facts.xrt.driver,
            "firmware": facts.xrt.firmware,
            "devices": ", ".join(facts.xrt.devices),
        }
        said = ", ".join(f"{what} {value}" for what, value in versions.items() if value)
        checks.append(Check("xrt", "ok", said or "xrt-smi found no device"))
    if facts.rocm is not None:
        found = [marketing or name for name, marketing in (*facts.rocm.gpus, *facts.rocm.npus)]
        checks.append(
            Check("rocm", "ok", ", ".join(found) or facts.rocm.problem or "rocminfo: no device")
        )
    for problem in facts.problems:
        step = "Try it in a terminal; a device or its driver may be hanging."
        checks.append(Check("tools", "warn", problem, step))
    return checks
