"""Free memory of a device: from made-up sysfs trees and recorded answers of Windows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fimble.models.device_memory import (
    DeviceMemory,
    Gpu,
    free_memory,
    gpus_from_sysfs,
    gpus_from_windows,
)

GIB = 1 << 30
RAM = (20 * GIB, 32 * GIB)

RADEON = Gpu("Radeon RX 7900 XTX", 22 * GIB, 24 * GIB, 15 * GIB, 16 * GIB)
INTEGRATED = Gpu("Radeon 890M", GIB // 4, GIB // 2, 14 * GIB, 16 * GIB)


def card(root: Path, number: int, **files: str) -> None:
    device = root / f"card{number}" / "device"
    device.mkdir(parents=True)
    for name, text in files.items():
        (device / name).write_text(f"{text}\n", encoding="utf-8")


def amd_card(root: Path, number: int, own: tuple[int, int], shared: tuple[int, int]) -> None:
    """(total, used) in GiB of the card's own memory and of what it may use of the system's."""
    card(
        root,
        number,
        vendor="0x1002",
        mem_info_vram_total=str(own[0] * GIB),
        mem_info_vram_used=str(own[1] * GIB),
        mem_info_gtt_total=str(shared[0] * GIB),
        mem_info_gtt_used=str(shared[1] * GIB),
    )


def test_the_amdgpu_driver_tells_of_each_card(tmp_path: Path) -> None:
    amd_card(tmp_path, 0, (24, 2), (16, 1))
    amd_card(tmp_path, 1, (1, 0), (16, 3))
    first, second = gpus_from_sysfs(tmp_path)
    assert (first.own_free, first.own_total, first.integrated) == (22 * GIB, 24 * GIB, False)
    assert (second.shared_free, second.integrated) == (13 * GIB, True)


def test_other_makers_connectors_and_old_drivers_are_left_out(tmp_path: Path) -> None:
    card(tmp_path, 0, vendor="0x10de", mem_info_vram_total="1")
    card(tmp_path, 1, vendor="0x1002")
    card(tmp_path, 2, vendor="0x1002", mem_info_vram_total="many")
    (tmp_path / "card3-DP-1").mkdir()
    assert gpus_from_sysfs(tmp_path) == []
    assert gpus_from_sysfs(tmp_path / "nothing") == []


def test_more_in_use_than_there_is_counts_as_none_free(tmp_path: Path) -> None:
    amd_card(tmp_path, 0, (8, 9), (8, 9))
    (gpu,) = gpus_from_sysfs(tmp_path)
    assert (gpu.own_free, gpu.shared_free) == (0, 0)


# What PowerShell answers; a list of one is that one, and so is an empty one nothing.
WINDOWS: dict[str, Any] = {
    "adapters": [
        {
            "DriverDesc": "AMD Radeon RX 7900 XTX",
            "MatchingDeviceId": "PCI\\VEN_1002&DEV_744C&REV_C8",
            "Memory": 25753026560,
        },
        {"DriverDesc": "Microsoft Basic", "MatchingDeviceId": "ROOT\\BasicRender", "Memory": None},
        {"DriverDesc": "Other", "MatchingDeviceId": "PCI\\VEN_10DE&DEV_2684", "Memory": 24 << 30},
    ],
    "usage": [
        {"DedicatedUsage": 1 << 30, "SharedUsage": 100 << 20},
        {"DedicatedUsage": "1048576", "SharedUsage": 0},
    ],
}


def test_windows_tells_what_an_adapter_has_and_what_is_in_use() -> None:
    (gpu,) = gpus_from_windows(WINDOWS, RAM)
    assert gpu.name == "AMD Radeon RX 7900 XTX"
    assert gpu.own_total - gpu.own_free == GIB + (1 << 20)
    assert gpu.shared_total == 16 * GIB


def test_one_adapter_comes_without_a_list() -> None:
    one = {"adapters": WINDOWS["adapters"][0], "usage": None}
    (gpu,) = gpus_from_windows(one, RAM)
    assert gpu.own_free == gpu.own_total == 25753026560


@pytest.mark.parametrize(
    "answer", [None, [], "text", {"adapters": 3}, {"adapters": [None, 3, {"Memory": "x"}]}]
)
def test_an_answer_of_another_shape_is_no_adapter(answer: object) -> None:
    assert gpus_from_windows(answer, RAM) == []


@pytest.mark.parametrize(
    ("provider", "gpus", "free", "source"),
    [
        ("CPU", [RADEON], 20 * GIB, "of the system"),
        ("RyzenAI", [RADEON], 20 * GIB, "of the system"),
        ("dml", [RADEON], 22 * GIB, "of Radeon RX 7900 XTX"),
        ("AMDGPU", [INTEGRATED, RADEON], 22 * GIB, "of Radeon RX 7900 XTX"),
        ("DmlExecutionProvider", [RADEON], 22 * GIB, "of Radeon RX 7900 XTX"),
        ("WebGPU", [INTEGRATED], GIB // 4 + 14 * GIB, "that Radeon 890M shares with the system"),
        ("dml", [], 20 * GIB, "of the system (the GPU's own is not known)"),
        ("QNN", [RADEON], 20 * GIB, "of the system"),
    ],
)
def test_the_memory_that_a_provider_works_in(
    provider: str, gpus: list[Gpu], free: int, source: str
) -> None:
    memory = free_memory(provider, gpus=lambda: gpus, system_memory=lambda: RAM)
    assert (memory.free, memory.source) == (free, source)


def test_an_integrated_gpu_never_has_more_than_the_system_has_free() -> None:
    memory = free_memory("dml", gpus=lambda: [INTEGRATED], system_memory=lambda: (GIB, 32 * GIB))
    assert memory.free == GIB // 4 + GIB


def test_a_setting_is_taken_at_its_word_and_nothing_is_looked_at() -> None:
    def look() -> list[Gpu]:
        raise AssertionError("looked")

    assert free_memory("dml", setting=GIB, gpus=look) == DeviceMemory(GIB, GIB, "as given")


def test_this_machine_has_some_memory() -> None:
    memory = free_memory("CPU")
    assert 0 < memory.free <= memory.total
