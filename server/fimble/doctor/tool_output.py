"""Devices out of what xrt-smi, rocminfo and vulkaninfo print.

Pure functions over recorded outputs; every release prints a little differently.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = [
    "RocmFacts",
    "VulkanDevice",
    "XrtFacts",
    "parse_rocminfo",
    "parse_vulkaninfo",
    "parse_xrt_smi",
]


@dataclass(frozen=True, slots=True)
class XrtFacts:
    """Versions of XRT, the driver and the NPU's firmware, and the devices' names; empty where
    it does not say.
    """

    xrt: str = ""
    driver: str = ""
    firmware: str = ""
    devices: tuple[str, ...] = ()


def parse_xrt_smi(text: str) -> XrtFacts:
    """Out of ``xrt-smi examine`` (or ``xbutil examine``) of Linux or Windows."""
    return XrtFacts(
        xrt=_value(text, r"^XRT\s*\n(?:.*\n)*?\s*Version"),
        driver=_value(text, r"^\s*(?:amdxdna|NPU Driver(?: Version)?|IPUDRV)"),
        firmware=_value(text, r"^\s*(?:NPU )?Firmware Version"),
        devices=tuple(
            found[1].strip()
            for found in re.finditer(
                r"^\|?\s*\[[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\]\s*[:|]\s*([^|\n]+)",
                text,
                re.MULTILINE | re.IGNORECASE,
            )
        ),
    )


def _value(text: str, label: str) -> str:
    """What stands behind the label, up to a comma; "unknown" and "N/A" are nothing."""
    found = re.search(rf"{label}\s*:\s*([^,\n]+)", text, re.MULTILINE | re.IGNORECASE)
    value = found[1].strip() if found else ""
    return "" if value.lower() in ("unknown", "n/a", "") else value


@dataclass(frozen=True, slots=True)
class RocmFacts:
    """``gpus`` and ``npus`` are (name, marketing name) pairs; ``problem`` is what ROCm says."""

    gpus: tuple[tuple[str, str], ...] = ()
    npus: tuple[tuple[str, str], ...] = ()
    problem: str = ""


def parse_rocminfo(text: str) -> RocmFacts:
    """Out of ``rocminfo``: one paragraph an agent, between rows of stars."""
    gpus, npus = [], []
    for agent in re.split(r"^\*+\s*\nAgent \d+.*\n\*+\s*\n", text, flags=re.MULTILINE)[1:]:
        name = _field(agent, "Name")
        pair = (name, _field(agent, "Marketing Name"))
        kind = _field(agent, "Device Type").upper()
        if kind == "GPU":
            gpus.append(pair)
        elif name.startswith("aie") or kind == "DSP":
            npus.append(pair)
    problem = ""
    if not (gpus or npus):
        said = [line.strip() for line in text.splitlines() if line.strip()]
        problem = next((s for s in said if re.search("not loaded|denied|error|fail", s, re.I)), "")
    return RocmFacts(tuple(gpus), tuple(npus), problem)


def _field(agent: str, label: str) -> str:
    found = re.search(rf"^ *{label}: *(.*?) *$", agent, re.MULTILINE)
    return found[1] if found else ""


@dataclass(frozen=True, slots=True)
class VulkanDevice:
    """``software`` for one that computes on the processor (llvmpipe, SwiftShader)."""

    name: str
    driver: str = ""
    software: bool = False


def parse_vulkaninfo(text: str) -> tuple[VulkanDevice, ...]:
    """Out of ``vulkaninfo --summary``."""
    devices = []
    for part in re.split(r"^GPU\d+:\s*$", text, flags=re.MULTILINE)[1:]:
        values = dict(re.findall(r"^\s*(\w+)\s*=\s*(.*?)\s*$", part, re.MULTILINE))
        name = values.get("deviceName", "")
        if not name:
            continue
        kind = values.get("deviceType", "").upper()
        software = kind.endswith("_CPU") or bool(re.search("llvmpipe|swiftshader", name, re.I))
        driver = " ".join(filter(None, (values.get("driverName"), values.get("driverInfo"))))
        devices.append(VulkanDevice(name, driver, software))
    return tuple(devices)
