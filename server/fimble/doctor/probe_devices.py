"""Looks for NPUs and GPUs: Linux' /sys and /dev, and the tools of Windows, XRT, ROCm, Vulkan.

Gathers; what it means is for ``devices`` and the parsers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from fimble import system
from fimble.doctor.devices import AMD_NPU, Device, DeviceNodes, is_npu
from fimble.doctor.programs import (
    ProgramOutput,
    run_for_powershell,
    run_program,
)
from fimble.doctor.tool_output import (
    RocmFacts,
    VulkanDevice,
    XrtFacts,
    parse_rocminfo,
    parse_vulkaninfo,
    parse_xrt_smi,
)
from fimble.doctor.windows_output import QUERY, devices_from_pnputil, facts_from_cim

__all__ = ["DeviceFacts", "devices_in_sysfs", "look_for_devices", "nodes_in_dev"]

Facts = TypeVar("Facts")

_WINDOWS_SECONDS = 40.0
_LIBRARY_FOLDERS = (
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib64",
    "usr/lib",
    "usr/local/lib",
    "lib64",
    "lib",
)


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What was found. None for what was not looked at or is not installed.

    ``problems`` are programs that did not answer. ``nodes`` is None but on Linux, and so is
    ``vulkan_library``: whether Vulkan's loader is installed.
    """

    os: str = ""
    devices: tuple[Device, ...] = ()
    nodes: DeviceNodes | None = None
    xrt: XrtFacts | None = None
    rocm: RocmFacts | None = None
    vulkan: tuple[VulkanDevice, ...] | None = None
    vulkan_library: bool | None = None
    problems: tuple[str, ...] = ()


def look_for_devices(here: system.OperatingSystem, root: Path = Path("/")) -> DeviceFacts:
    """Asks all that this system has, at once; takes seconds on Windows."""
    if here == "windows":
        return _on_windows()
    if here == "linux":
        return _on_linux(root)
    return DeviceFacts()


# --- Windows -------------------------------------------------------------------------------


def _on_windows() -> DeviceFacts:
    windows = Path(os.environ.get("SYSTEMROOT", r"C:\Windows"))
    system32 = windows / "System32"
    with ThreadPoolExecutor() as pool:
        xrt = pool.submit(_ask, "xrt-smi", ("examine",), system32 / "AMD")
        answer = system.powershell_json(QUERY, timeout=_WINDOWS_SECONDS, run=run_for_powershell)
        said = xrt.result()
    facts = facts_from_cim(answer)
    devices, problems = facts.devices, []
    if not any(device.kind == "npu" for device in devices):
        devices += _npus_by_pnputil(system32)
    if answer is None:
        problems.append("PowerShell did not tell of devices")
    found = _parsed(said, parse_xrt_smi)
    if said is not None and said.problem:
        problems.append(said.problem)
    if found is not None and found.driver:
        devices = tuple(_with_version(each, found.driver) for each in devices)
    return DeviceFacts(os=facts.os, devices=devices, xrt=found, problems=tuple(problems))


def _npus_by_pnputil(system32: Path) -> tuple[Device, ...]:
    """``/drivers``, which gives versions, is not known to every release."""
    asked = ("/enum-devices", "/class", "ComputeAccelerator")
    for arguments in ((*asked, "/drivers"), asked):
        said = _ask("pnputil", arguments, system32)
        found = () if said is None else devices_from_pnputil(said.text)
        if found:
            return found
    return ()


# --- Linux ---------------------------------------------------------------------------------


def _on_linux(root: Path) -> DeviceFacts:
    tools: dict[str, tuple[str, tuple[str, ...], Path]] = {
        "xrt": ("xrt-smi", ("examine",), root / "opt/xilinx/xrt/bin"),
        "rocm": ("rocminfo", (), root / "opt/rocm/bin"),
        "vulkan": ("vulkaninfo", ("--summary",), root / "usr/bin"),
    }
    with ThreadPoolExecutor() as pool:
        asked = {name: pool.submit(_ask, *tool) for name, tool in tools.items()}
        said = {name: future.result() for name, future in asked.items()}
    devices = tuple(devices_in_sysfs(root))
    xrt = _parsed(said["xrt"], parse_xrt_smi)
    if xrt is not None and xrt.devices and not any(each.kind == "npu" for each in devices):
        devices += tuple(Device("npu", name, driver="amdxdna") for name in xrt.devices)
    if xrt is not None and xrt.driver:
        devices = tuple(_with_version(each, xrt.driver) for each in devices)
    return DeviceFacts(
        devices=devices,
        nodes=nodes_in_dev(root),
        xrt=xrt,
        rocm=_parsed(said["rocm"], parse_rocminfo),
        vulkan=_parsed(said["vulkan"], parse_vulkaninfo),
        vulkan_library=any((root / each / "libvulkan.so.1").exists() for each in _LIBRARY_FOLDERS),
        problems=tuple(each.problem for each in said.values() if each and each.problem),
    )


def _with_version(device: Device, version: str) -> Device:
    known = device.kind != "npu" or device.driver_version
    return device if known else replace(device, driver_version=version)


def devices_in_sysfs(root: Path = Path("/")) -> Iterator[Device]:
    """The NPUs among all PCI devices, with or without a driver, and the GPUs."""
    version = _read(root / "sys/module/amdxdna/version")
    for place in _sorted(root / "sys/bus/pci/devices"):
        vendor, device = _id(place / "vendor"), _id(place / "device")
        if not is_npu(vendor, device, "ComputeAccelerator" if _has_accel(place) else ""):
            continue
        driver = _driver_of(place)
        yield Device(
            kind="npu",
            name="AMD NPU",
            vendor=vendor,
            device=device,
            driver=driver,
            driver_version=version if driver == "amdxdna" else "",
            problem="" if driver else "no driver has taken it (amdxdna would)",
        )
    for card in _sorted(root / "sys/class/drm"):
        if not card.name.removeprefix("card").isdigit():
            continue  # a connector, as card0-HDMI-A-1
        place = card / "device"
        vendor, device = _id(place / "vendor"), _id(place / "device")
        if vendor and vendor != AMD_NPU:
            name = _read(place / "product_name") or f"GPU {card.name}"
            yield Device("gpu", name, vendor, device, driver=_driver_of(place))


def nodes_in_dev(root: Path = Path("/")) -> DeviceNodes:
    """The device files, and whether this user may read and write them."""

    def access(folder: Path, pattern: str) -> dict[str, bool]:
        found = sorted(folder.glob(pattern)) if folder.is_dir() else []
        return {str(each): os.access(each, os.R_OK | os.W_OK) for each in found}

    return DeviceNodes(
        accel=access(root / "dev/accel", "accel*"),
        dri=access(root / "dev/dri", "renderD*"),
        kfd=access(root / "dev", "kfd"),
    )


def _has_accel(place: Path) -> bool:
    return (place / "accel").is_dir()


def _driver_of(place: Path) -> str:
    link = place / "driver"
    try:
        return link.resolve().name if link.exists() else ""
    except (OSError, RuntimeError):
        return ""


def _id(path: Path) -> str:
    return _read(path).lower().removeprefix("0x")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _sorted(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


# --- both ----------------------------------------------------------------------------------


def _ask(name: str, arguments: tuple[str, ...], place: Path) -> ProgramOutput | None:
    """What the program says; None if it is not installed."""
    program = system.find_program(name, places=(place,), outside=(Path.cwd(),))
    return None if program is None else run_program([program, *arguments])


def _parsed(said: ProgramOutput | None, parse: Callable[[str], Facts]) -> Facts | None:
    """None where there is no such program, or it said nothing at all."""
    if said is None:
        return None
    return parse(said.text or said.errors)
