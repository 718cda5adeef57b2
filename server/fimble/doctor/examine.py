"""Looks at this machine and says what is in the way of fimble: ``fimble doctor``.

Probes first, several at once since some take seconds; then what they found is judged.
Changes nothing, starts no engine, loads no model, asks nothing of the network.
"""

from __future__ import annotations

import functools
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fimble
from fimble import system
from fimble.doctor.checks import Check, Report
from fimble.doctor.devices import Severity, gpu_checks, memory_lock_check, npu_checks
from fimble.doctor.editors import editor_check, find_clients
from fimble.doctor.engine_state import engine_check, look_at_engine
from fimble.doctor.machine import home_check, look_at_system, machine_checks
from fimble.doctor.packages import look_at_packages, package_checks, severity_of
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
from fimble.models.device_memory import free_memory
from fimble.models.runtimes import installed_runtimes
from fimble.models.store import Store

__all__ = ["examine"]


def examine() -> Report:
    """All checks of this machine. Takes a few seconds."""
    here = system.operating_system()
    runtimes = installed_runtimes()
    with ThreadPoolExecutor() as pool:
        devices_found = pool.submit(look_for_devices, here)
        imported_found = pool.submit(_import, bool(runtimes))
        engine_found = pool.submit(look_at_engine)
        store = look_at_packages(Store())
        facts, imported = devices_found.result(), imported_found.result()
        engine = engine_found.result()

    releases = find_releases(here)
    machine = look_at_machine(releases)
    machine_facts = look_at_system(facts.os)
    severity = severity_of(store.packages)
    made_for = {p.name: p.inspection.release for p in store.packages if p.inspection is not None}
    checks = [
        *machine_checks(machine_facts),
        home_check(machine_facts),
        *runtime_checks(runtimes, imported, here, facts.devices, next(iter(releases), "")),
        *npu_checks(facts.devices, severity, facts.nodes),
        *gpu_checks(facts.devices, severity, facts.nodes),
        *_linux_only(facts, severity),
        *_tools(facts),
        *library_checks(
            machine, environment_paths(), severity, installed_version("onnxruntime-ep-webgpu")
        ),
        *ryzen_ai_checks(releases, made_for, machine, severity),
        *package_checks(store, machine, functools.cache(free_memory)),
        engine_check(engine),
        editor_check(find_clients(Path.home(), here)),
    ]
    return Report(tuple(checks), fimble.__version__)


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
