"""Devices out of what Windows' own tools say: CIM by way of PowerShell, and pnputil.

Pure functions over recorded answers. Labels are translated on a Windows in another language,
so what is looked for are ids, versions and codes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fimble.doctor.devices import Device, is_npu

__all__ = ["QUERY", "WindowsFacts", "devices_from_pnputil", "facts_from_cim"]

_OURS = (
    "PNPClass = ''Display'' OR PNPClass = ''ComputeAccelerator'' OR "
    "PNPDeviceID LIKE ''%VEN[_]1022&DEV[_]17F%'' OR PNPDeviceID LIKE ''%VEN[_]1022&DEV[_]1502%''"
)
_OUR_DRIVERS = _OURS.replace("PNPClass", "DeviceClass").replace("PNPDeviceID", "DeviceID")
#: A PowerShell expression without double quotes, which would not survive the command line.
QUERY = (
    "@{os = Get-CimInstance Win32_OperatingSystem -ErrorAction SilentlyContinue | "
    "Select-Object Caption, Version; "
    "devices = @(Get-CimInstance Win32_PnPEntity -ErrorAction SilentlyContinue "
    f"-Filter '{_OURS}' | "
    "Select-Object PNPDeviceID, Name, PNPClass, ConfigManagerErrorCode); "
    "drivers = @(Get-CimInstance Win32_PnPSignedDriver -ErrorAction SilentlyContinue "
    f"-Filter '{_OUR_DRIVERS}' | "
    "Select-Object DeviceID, DriverVersion)}"
)

_PCI = re.compile(r"VEN_([0-9A-F]{4})&DEV_([0-9A-F]{4})", re.IGNORECASE)
#: Four numbers: a date has three at most.
_VERSION = re.compile(r"(?<![\d.,])\d{1,5}(?:[.,]\d{1,5}){3}(?![\d.,]*\d)")
#: Windows' codes for a device that does not work (CM_PROB_…).
_PROBLEMS = {
    1: "it is not configured",
    10: "it cannot start",
    12: "it has not the resources that it needs",
    14: "it works after a restart of the machine only",
    22: "it is disabled",
    24: "it is not there, or its drivers are not all installed",
    28: "no driver is installed for it",
    31: "Windows cannot load its driver",
    32: "its driver is disabled",
    39: "its driver is damaged or missing",
    43: "its driver reported a failure",
    52: "its driver is not signed",
}


@dataclass(frozen=True, slots=True)
class WindowsFacts:
    """``os`` is the system's name and version as Windows says them."""

    os: str = ""
    devices: tuple[Device, ...] = ()


def facts_from_cim(answer: Any) -> WindowsFacts:
    """Out of the answer to QUERY, which may lack anything."""
    table = answer if isinstance(answer, dict) else {}
    versions = {
        _text(each, "DeviceID").lower(): _version(_text(each, "DriverVersion"))
        for each in _tables(table.get("drivers"))
    }
    devices = []
    for each in _tables(table.get("devices")):
        place = _text(each, "PNPDeviceID")
        found = _PCI.search(place)
        if not found:
            continue  # a remote desktop's display, a virtual one
        vendor, device = found[1].lower(), found[2].lower()
        npu = is_npu(vendor, device, _text(each, "PNPClass"))
        if not npu and _text(each, "PNPClass").lower() != "display":
            continue
        devices.append(
            Device(
                kind="npu" if npu else "gpu",
                name=_text(each, "Name"),
                vendor=vendor,
                device=device,
                driver_version=versions.get(place.lower(), ""),
                problem=_problem(each.get("ConfigManagerErrorCode")),
            )
        )
    system = next(iter(_tables(table.get("os"))), {})
    name = " ".join(filter(None, (_text(system, "Caption"), _text(system, "Version"))))
    return WindowsFacts(name, tuple(devices))


def devices_from_pnputil(text: str) -> tuple[Device, ...]:
    """Out of ``pnputil /enum-devices /class ComputeAccelerator /drivers``, in any language.

    Each device is a paragraph whose first line has the instance id and whose second has the
    name; versions stand behind a date.
    """
    devices = []
    for paragraph in re.split(r"\n\s*\n(?=[^\n]*VEN_)", text):
        found = _PCI.search(paragraph)
        if not found:
            continue
        vendor, device = found[1].lower(), found[2].lower()
        npu = is_npu(vendor, device, "ComputeAccelerator" if "ComputeAcc" in paragraph else "")
        if not npu:
            continue
        versions = sorted(
            (_version(each[0]) for each in _VERSION.finditer(paragraph)), key=_numbers
        )
        lines = [line for line in paragraph.splitlines() if line.strip()]
        at = next(n for n, line in enumerate(lines) if _PCI.search(line))
        name = lines[at + 1].partition(":")[2].strip() if at + 1 < len(lines) else ""
        # The best of the matching drivers is the one that Windows installs.
        version = versions[-1] if versions else ""
        devices.append(Device("npu", name, vendor, device, driver_version=version))
    return tuple(devices)


def _version(text: str) -> str:
    """The version in ``text`` with dots, also where commas were put for them."""
    found = _VERSION.search(text)
    return found[0].replace(",", ".") if found else ""


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part]


def _problem(code: object) -> str:
    try:
        number = int(str(code))
    except ValueError:
        return ""
    if number == 0:
        return ""
    return _PROBLEMS.get(number, f"Windows reports problem code {number}")


def _tables(value: object) -> Iterator[dict[str, Any]]:
    """PowerShell writes a list of one as that one, and an empty one as nothing."""
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict):
            yield each


def _text(table: dict[str, Any], key: str) -> str:
    value = table.get(key)
    return value.strip() if isinstance(value, str) else ""
