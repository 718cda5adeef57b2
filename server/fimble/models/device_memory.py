"""How much memory the device of a provider has free, as far as the system tells.

On Linux the amdgpu driver says so in sysfs; on Windows the registry has what an adapter has
and a performance counter what is in use. Everything else works in the system's memory: the
CPU and the NPU, and a GPU without memory of its own. Bytes throughout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fimble import system
from fimble.models.genai_config import canonical_provider
from fimble.models.package_json import as_int, as_table

__all__ = [
    "DeviceMemory",
    "Gpu",
    "find_gpus",
    "free_memory",
    "gpus_from_sysfs",
    "gpus_from_windows",
    "works_on_gpu",
]

_AMD = "0x1002"
_CARVE_OUT = 4 << 30
"""An AMD adapter with less than this is taken for an integrated one: what it has of its own was
cut out of the system's memory, and it works in the rest of that as well."""

_GPU_PROVIDERS = frozenset({"AMDGPU", "DML", "WebGPU", "cuda", "NvTensorRtRtx"})

_WINDOWS_QUERY = (
    "@{adapters = @(Get-ItemProperty -ErrorAction SilentlyContinue "
    "'HKLM:\\SYSTEM\\CurrentControlSet\\Control\\Class\\"
    "{4d36e968-e325-11ce-bfc1-08002be10318}\\0*' | "
    "Select-Object DriverDesc, MatchingDeviceId, "
    "@{n='Memory'; e={$_.'HardwareInformation.qwMemorySize'}}); "
    "usage = @(Get-CimInstance -ErrorAction SilentlyContinue "
    "Win32_PerfFormattedData_GPUPerformanceCounters_GPUAdapterMemory | "
    "Select-Object DedicatedUsage, SharedUsage)}"
)
# Win32_VideoController.AdapterRAM would be simpler, but it ends at 4 GiB.


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """``free`` of ``total``, and who says so, as "of the Radeon RX 7900 XTX".

    ``known`` is False where the system's memory stands in for a GPU's that nobody tells.
    """

    free: int
    total: int
    source: str
    known: bool = True


@dataclass(frozen=True, slots=True)
class Gpu:
    """An AMD adapter: memory of its own, and what it may use of the system's."""

    name: str
    own_free: int
    own_total: int
    shared_free: int
    shared_total: int

    @property
    def integrated(self) -> bool:
        """Whether its own memory is but a part cut out of the system's."""
        return self.own_total < _CARVE_OUT

    def memory(self, system_free: int) -> DeviceMemory:
        """What a model may have of it; never more of the system's memory than is free."""
        if not self.integrated:
            return DeviceMemory(self.own_free, self.own_total, f"of {self.name}")
        shared = min(self.shared_free, system_free)
        return DeviceMemory(
            self.own_free + shared,
            self.own_total + self.shared_total,
            f"that {self.name} shares with the system",
        )


def free_memory(
    provider: str,
    *,
    setting: int | None = None,
    gpus: Callable[[], list[Gpu]] | None = None,
    system_memory: Callable[[], tuple[int, int]] = system.available_memory,
) -> DeviceMemory:
    """The memory that a package of ``provider`` works in; ``setting`` is the user's word.

    Where the GPU's own is not known, it is the system's, and ``source`` says that.
    """
    if setting is not None:
        return DeviceMemory(setting, setting, "as given")
    free, total = system_memory()
    if not works_on_gpu(provider):
        return DeviceMemory(free, total, "of the system")
    found = (gpus or find_gpus)()
    if not found:
        source = "of the system (the GPU's own is not known)"
        return DeviceMemory(free, total, source, known=False)
    return max((gpu.memory(free) for gpu in found), key=lambda memory: memory.total)


def works_on_gpu(provider: str) -> bool:
    """Whether a GPU's memory counts for the provider; else it is the system's."""
    return canonical_provider(provider) in _GPU_PROVIDERS


def find_gpus() -> list[Gpu]:
    """The AMD adapters of this machine; none where the system does not tell of them."""
    here = system.operating_system()
    if here == "linux":
        return gpus_from_sysfs()
    if here == "windows":
        return gpus_from_windows(system.powershell_json(_WINDOWS_QUERY), system.available_memory())
    return []


def gpus_from_sysfs(root: Path = Path("/sys/class/drm")) -> list[Gpu]:
    """What the amdgpu driver says of each card; ROCm reads the same files."""
    found = []
    for device in sorted(root.glob("card[0-9]*/device")):
        if _read(device / "vendor") != _AMD:
            continue
        numbers = [
            as_int(_read(device / f"mem_info_{kind}_{what}"))
            for kind in ("vram", "gtt")
            for what in ("total", "used")
        ]
        if None in numbers:
            continue  # a driver without these files
        own, own_used, shared, shared_used = (number or 0 for number in numbers)
        name = _read(device / "product_name") or f"AMD GPU {device.parent.name}"
        found.append(Gpu(name, max(0, own - own_used), own, max(0, shared - shared_used), shared))
    return found


def gpus_from_windows(answer: Any, system_memory: tuple[int, int]) -> list[Gpu]:
    """Adapters out of the answer to _WINDOWS_QUERY. Windows shares half of its memory.

    The counters do not say whose usage they are; all of it is taken off each adapter.
    """
    table = as_table(answer)
    usage = [as_table(each) for each in _listed(table.get("usage"))]
    own_used = sum(as_int(each.get("DedicatedUsage")) or 0 for each in usage)
    shared_used = sum(as_int(each.get("SharedUsage")) or 0 for each in usage)
    shared = system_memory[1] // 2
    found = []
    for each in map(as_table, _listed(table.get("adapters"))):
        own = as_int(each.get("Memory"))
        if own is None or "ven_1002" not in str(each.get("MatchingDeviceId", "")).lower():
            continue
        name = str(each.get("DriverDesc") or "AMD GPU")
        found.append(Gpu(name, max(0, own - own_used), own, max(0, shared - shared_used), shared))
    return found


def _listed(value: object) -> list[object]:
    """PowerShell writes a list of one as that one."""
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
