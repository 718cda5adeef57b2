"""NPUs and GPUs: what one is, whether AMD's packages run on it, and whether its driver will do.

Judges what the probes found; asks nothing of the machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from fimble.doctor.checks import Check, Status

__all__ = [
    "AMD_GPU",
    "AMD_NPU",
    "LEAST_NPU_DRIVER",
    "Device",
    "DeviceNodes",
    "Severity",
    "gpu_checks",
    "is_npu",
    "memory_lock_check",
    "npu_checks",
    "version_numbers",
]

#: PCI vendors: AMD's processors and chipsets, AMD's graphics.
AMD_NPU = "1022"
AMD_GPU = "1002"
_SUPPORTED_NPU = "17f0"
_OLD_NPU = "1502"
_OLD_NAMES = ("npu1", "phoenix", "hawk point")
LEAST_NPU_DRIVER = "32.0.203.280"
_MORE_LOCKED_MEMORY = 8 << 30

#: How bad it is that something for a provider is missing: a failure for the package that
#: would run, a doubt where only another one needs it, nothing where none does.
Severity = Callable[[str], Status]


@dataclass(frozen=True, slots=True)
class Device:
    """``vendor`` and ``device`` are PCI ids in lower-case hex, empty where unknown.

    ``driver_version`` is empty where unknown; ``problem`` is what the system says is wrong
    with the device, as "no driver is installed".
    """

    kind: Literal["npu", "gpu"]
    name: str
    vendor: str = ""
    device: str = ""
    driver: str = ""
    driver_version: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class DeviceNodes:
    """The files of Linux through which devices are reached: path → whether this user may."""

    accel: dict[str, bool]
    dri: dict[str, bool]
    kfd: dict[str, bool]


def is_npu(vendor: str, device: str, device_class: str = "") -> bool:
    """Whether PCI ids are an AMD NPU's, known or not: NPUs are of a class of their own."""
    known = device in (_SUPPORTED_NPU, _OLD_NPU)
    return vendor == AMD_NPU and (known or device_class.lower() == "computeaccelerator")


def version_numbers(version: str) -> tuple[int, ...]:
    """``32.0.203.280`` as numbers; empty for what is no version."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:4])


# --- NPU -----------------------------------------------------------------------------------


def npu_checks(
    devices: Sequence[Device], severity: Severity, nodes: DeviceNodes | None = None
) -> list[Check]:
    """The lines about NPUs. ``nodes`` is given on Linux."""
    npus = [device for device in devices if device.kind == "npu"]
    if not npus:
        status = severity("RyzenAI")
        if status == "ok":
            return [Check("npu", "ok", "none found; no installed package needs one")]
        return [
            Check(
                "npu",
                status,
                "none found, and a package for AMD's Ryzen AI NPU is installed",
                "Install AMD's NPU driver if the machine has an NPU, or pull a package for the "
                "GPU or the CPU.",
            )
        ]
    checks = []
    for npu in npus:
        checks.append(_generation(npu, severity))
        if _is_supported(npu):
            checks.append(_driver(npu, severity, nodes))
    return checks


def _is_supported(npu: Device) -> bool:
    if npu.device:
        return npu.device == _SUPPORTED_NPU
    # Programs that give a name only: RyzenAI-npu1 is the old one, npu4 to npu6 are the new.
    return bool(re.search(r"npu[4-9]|strix|krackan|kraken|aie2p", npu.name, re.IGNORECASE))


def _generation(npu: Device, severity: Severity) -> Check:
    shown = _shown(npu)
    if _is_supported(npu):
        return Check("npu", "ok", f"{shown}: XDNA 2, which AMD's packages run on")
    old = npu.device == _OLD_NPU or any(each in npu.name.lower() for each in _OLD_NAMES)
    what = (
        "XDNA 1 (Phoenix or Hawk Point), which AMD's language models do not run on"
        if old
        else f"an NPU that fimble does not know; AMD's packages are for {AMD_NPU}:{_SUPPORTED_NPU}"
    )
    return Check(
        "npu",
        "fail" if severity("RyzenAI") == "fail" else "warn",
        f"{shown}: {what}",
        "Use a package for the GPU or the CPU.",
    )


def _driver(npu: Device, severity: Severity, nodes: DeviceNodes | None) -> Check:
    doubt: Status = "fail" if severity("RyzenAI") == "fail" else "warn"
    if npu.problem:
        return Check(
            "npu driver", doubt, f"{_shown(npu)}: {npu.problem}", "Install AMD's NPU driver."
        )
    if nodes is not None:
        return _linux_driver(npu, doubt, nodes)
    if not npu.driver_version:
        return Check(
            "npu driver",
            doubt,
            "its version could not be read",
            f"See that it is at least {LEAST_NPU_DRIVER}, in Device Manager under Neural "
            "processors.",
        )
    if version_numbers(npu.driver_version) < version_numbers(LEAST_NPU_DRIVER):
        return Check(
            "npu driver",
            doubt,
            f"{npu.driver_version} is older than {LEAST_NPU_DRIVER}, the oldest that will do",
            "Install a newer NPU driver from AMD.",
        )
    return Check("npu driver", "ok", npu.driver_version)


def _linux_driver(npu: Device, doubt: Status, nodes: DeviceNodes) -> Check:
    if npu.driver and npu.driver != "amdxdna":
        return Check(
            "npu driver",
            doubt,
            f"the NPU is driven by {npu.driver}, not by amdxdna",
            "Install AMD's XDNA driver (amdxdna; part of Linux since 6.14).",
        )
    if not nodes.accel:
        return Check(
            "npu driver",
            doubt,
            "there is no /dev/accel/accel0: the amdxdna driver is not loaded or failed to start",
            "Run `sudo modprobe amdxdna`, and see what `sudo dmesg` says of it.",
        )
    closed = [path for path, may in nodes.accel.items() if not may]
    if closed:
        return _no_access("npu driver", doubt, closed[0])
    version = f" {npu.driver_version}" if npu.driver_version else ""
    return Check("npu driver", "ok", f"amdxdna{version}, {', '.join(nodes.accel)}")


def _no_access(name: str, status: Status, path: str) -> Check:
    return Check(
        name,
        status,
        f"this user may not use {path}",
        "Run `sudo usermod -aG render,video $USER`, then log in again.",
    )


def memory_lock_check(limit: int | None, devices: Sequence[Device], severity: Severity) -> Check:
    """Whether an NPU may lock the memory that it works in; ``limit`` in bytes, None for none."""
    needed = any(device.kind == "npu" for device in devices) or severity("RyzenAI") != "ok"
    if limit is None:
        return Check("locked memory", "ok", "no limit")
    size = f"at most {limit / 2**20:,.0f} MiB"
    if not needed or limit >= _MORE_LOCKED_MEMORY:
        return Check("locked memory", "ok", size)
    return Check(
        "locked memory",
        "warn",
        f"{size}; a model on the NPU locks all of its weights",
        "Set memlock to unlimited for your user in /etc/security/limits.conf, then log in again.",
    )


# --- GPU -----------------------------------------------------------------------------------


def gpu_checks(
    devices: Sequence[Device], severity: Severity, nodes: DeviceNodes | None = None
) -> list[Check]:
    """The lines about GPUs. ``nodes`` is given on Linux."""
    gpus = [device for device in devices if device.kind == "gpu"]
    worst = max((severity(each) for each in ("DML", "AMDGPU", "WebGPU", "cuda")), key=_rank)
    if not gpus:
        if worst == "ok":
            return [Check("gpu", "ok", "none found; no installed package needs one")]
        return [
            Check(
                "gpu",
                worst,
                "none found, and a package for a GPU is installed",
                "Install the graphics driver, or pull a package for the CPU.",
            )
        ]
    checks = []
    for gpu in gpus:
        version = f", driver {gpu.driver_version}" if gpu.driver_version else ""
        if gpu.problem:
            status: Status = "warn" if worst == "ok" else worst
            step = "Install the graphics driver from its maker."
            checks.append(Check("gpu", status, f"{_shown(gpu)}: {gpu.problem}", step))
        else:
            checks.append(Check("gpu", "ok", f"{_shown(gpu)}{version}"))
    if nodes is not None:
        checks += _linux_access(gpus, nodes, worst)
    return checks


def _linux_access(gpus: Sequence[Device], nodes: DeviceNodes, worst: Status) -> list[Check]:
    doubt: Status = "warn" if worst == "ok" else worst
    closed = [path for path, may in {**nodes.dri, **nodes.kfd}.items() if not may]
    if closed:
        return [_no_access("gpu access", doubt, closed[0])]
    if not nodes.dri and any(gpu.vendor == AMD_GPU for gpu in gpus):
        return [
            Check(
                "gpu access",
                doubt,
                "there is a GPU, and no /dev/dri to reach it through",
                "Load the amdgpu driver; in a container, pass /dev/dri and /dev/kfd on.",
            )
        ]
    return []


def _rank(status: Status) -> int:
    return ("ok", "warn", "fail").index(status)


def _shown(device: Device) -> str:
    ids = f" ({device.vendor}:{device.device})" if device.device else ""
    return f"{device.name or device.kind.upper()}{ids}"
