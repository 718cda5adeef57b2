"""What is said of NPUs, GPUs and their drivers, from what was found."""

from __future__ import annotations

from pathlib import Path

import pytest

from fimble.doctor.checks import Check, Status
from fimble.doctor.devices import (
    Device,
    DeviceNodes,
    Severity,
    gpu_checks,
    memory_lock_check,
    npu_checks,
)
from fimble.doctor.probe_devices import devices_in_sysfs, look_for_devices, nodes_in_dev

STRIX = Device("npu", "NPU", "1022", "17f0", driver_version="32.0.203.280")
LINUX = Device("npu", "AMD NPU", "1022", "17f0", driver="amdxdna", driver_version="0.6")
OPEN = DeviceNodes({"/dev/accel/accel0": True}, {"/dev/dri/renderD128": True}, {})
RADEON = Device("gpu", "Radeon", "1002", "744c")


def needing(provider: str = "", status: Status = "fail") -> Severity:
    """The severity for a machine whose default package (or another) needs ``provider``."""
    return lambda asked: status if asked == provider else "ok"


def lines(checks: list[Check]) -> list[tuple[str, str]]:
    return [(check.name, check.status) for check in checks]


@pytest.mark.parametrize(
    ("device", "needed", "expected", "says"),
    [
        (STRIX, "RyzenAI", [("npu", "ok"), ("npu driver", "ok")], "32.0.203.280"),
        (STRIX, "", [("npu", "ok"), ("npu driver", "ok")], "XDNA 2"),
        (Device("npu", "NPU", "1022", "17f0", driver_version="32.0.203.279"), "RyzenAI",
         [("npu", "ok"), ("npu driver", "fail")], "older than 32.0.203.280"),
        (Device("npu", "NPU", "1022", "17f0", driver_version="32.0.203.28"), "",
         [("npu", "ok"), ("npu driver", "warn")], "older than"),
        (Device("npu", "NPU", "1022", "17f0", driver_version="33.0.0.1"), "RyzenAI",
         [("npu", "ok"), ("npu driver", "ok")], "33.0.0.1"),
        (Device("npu", "NPU", "1022", "17f0"), "RyzenAI",
         [("npu", "ok"), ("npu driver", "fail")], "could not be read"),
        (Device("npu", "NPU", "1022", "17f0", problem="no driver is installed for it"), "RyzenAI",
         [("npu", "ok"), ("npu driver", "fail")], "Install AMD's NPU driver"),
        (Device("npu", "NPU", "1022", "1502", driver_version="32.0.203.314"), "RyzenAI",
         [("npu", "fail")], "Phoenix or Hawk Point"),
        (Device("npu", "RyzenAI-npu1"), "", [("npu", "warn")], "Phoenix or Hawk Point"),
        (Device("npu", "RyzenAI-npu5", driver_version="32.0.300.1"), "RyzenAI",
         [("npu", "ok"), ("npu driver", "ok")], "XDNA 2"),
        (Device("npu", "NPU", "1022", "17f9"), "", [("npu", "warn")], "does not know"),
    ],
)  # fmt: skip
def test_an_npu_on_windows(
    device: Device, needed: str, expected: list[tuple[str, str]], says: str
) -> None:
    checks = npu_checks([device], needing(needed))
    assert lines(checks) == expected
    assert says in " ".join(f"{check.detail} {check.next_step}" for check in checks)


def test_no_npu_matters_only_where_one_is_needed() -> None:
    assert lines(npu_checks([], needing())) == [("npu", "ok")]
    assert lines(npu_checks([RADEON], needing("RyzenAI", "warn"))) == [("npu", "warn")]
    assert lines(npu_checks([], needing("RyzenAI"))) == [("npu", "fail")]


@pytest.mark.parametrize(
    ("device", "nodes", "status", "says"),
    [
        (LINUX, OPEN, "ok", "amdxdna 0.6, /dev/accel/accel0"),
        (LINUX, DeviceNodes({}, {}, {}), "fail", "modprobe amdxdna"),
        (LINUX, DeviceNodes({"/dev/accel/accel0": False}, {}, {}), "fail", "usermod"),
        (Device("npu", "", "1022", "17f0", driver="vfio-pci"), OPEN, "fail", "vfio-pci"),
        (Device("npu", "", "1022", "17f0", problem="no driver has taken it"), OPEN, "fail",
         "no driver has taken it"),
    ],
)  # fmt: skip
def test_an_npu_on_linux(device: Device, nodes: DeviceNodes, status: str, says: str) -> None:
    _, check = npu_checks([device], needing("RyzenAI"), nodes)
    assert (check.name, check.status) == ("npu driver", status)
    assert says in f"{check.detail} {check.next_step}"


@pytest.mark.parametrize(
    ("limit", "devices", "needed", "status"),
    [
        (None, [LINUX], "RyzenAI", "ok"),
        (8 << 20, [], "", "ok"),
        (8 << 20, [LINUX], "", "warn"),
        (8 << 20, [], "RyzenAI", "warn"),
        (64 << 30, [LINUX], "RyzenAI", "ok"),
    ],
)
def test_locked_memory(limit: int | None, devices: list[Device], needed: str, status: str) -> None:
    assert memory_lock_check(limit, devices, needing(needed)).status == status


@pytest.mark.parametrize(
    ("devices", "needed", "nodes", "expected"),
    [
        ([RADEON], "DML", None, [("gpu", "ok")]),
        ([], "", None, [("gpu", "ok")]),
        ([], "DML", None, [("gpu", "fail")]),
        ([Device("gpu", "Radeon", problem="it is disabled")], "", None, [("gpu", "warn")]),
        ([Device("gpu", "Radeon", problem="it is disabled")], "AMDGPU", None, [("gpu", "fail")]),
        ([RADEON], "AMDGPU", OPEN, [("gpu", "ok")]),
        ([RADEON], "AMDGPU", DeviceNodes({}, {}, {}), [("gpu", "ok"), ("gpu access", "fail")]),
        ([RADEON], "", DeviceNodes({}, {"/dev/dri/renderD128": False}, {}),
         [("gpu", "ok"), ("gpu access", "warn")]),
        ([RADEON], "", DeviceNodes({}, {"/dev/dri/renderD128": True}, {"/dev/kfd": False}),
         [("gpu", "ok"), ("gpu access", "warn")]),
    ],
)  # fmt: skip
def test_gpus(
    devices: list[Device],
    needed: str,
    nodes: DeviceNodes | None,
    expected: list[tuple[str, str]],
) -> None:
    checks = gpu_checks(devices, needing(needed), nodes)
    assert lines(checks) == expected
    assert all(check.next_step for check in checks if check.status != "ok")


# --- Linux' own files ----------------------------------------------------------------------


def pci(root: Path, place: str, vendor: str, device: str, driver: str = "") -> Path:
    """A device as /sys shows it."""
    folder = root / "sys/bus/pci/devices" / place
    folder.mkdir(parents=True)
    (folder / "vendor").write_text(f"{vendor}\n")
    (folder / "device").write_text(f"{device}\n")
    if driver:
        (root / "sys/bus/pci/drivers" / driver).mkdir(parents=True, exist_ok=True)
        (folder / "driver").symlink_to(root / "sys/bus/pci/drivers" / driver)
    return folder


def test_sysfs_of_a_strix_laptop(tmp_path: Path) -> None:
    pci(tmp_path, "0000:00:00.0", "0x1022", "0x1507")
    pci(tmp_path, "0000:66:00.1", "0x1022", "0x17f0", "amdxdna")
    gpu = pci(tmp_path, "0000:65:00.0", "0x1002", "0x150e", "amdgpu")
    (tmp_path / "sys/module/amdxdna").mkdir(parents=True)
    (tmp_path / "sys/module/amdxdna/version").write_text("0.6\n")
    for name in ("card1", "card1-HDMI-A-1", "renderD128"):
        (tmp_path / "sys/class/drm" / name).mkdir(parents=True)
        (tmp_path / "sys/class/drm" / name / "device").symlink_to(gpu)
    assert list(devices_in_sysfs(tmp_path)) == [
        Device("npu", "AMD NPU", "1022", "17f0", driver="amdxdna", driver_version="0.6"),
        Device("gpu", "GPU card1", "1002", "150e", driver="amdgpu"),
    ]


def test_sysfs_with_an_npu_that_has_no_driver(tmp_path: Path) -> None:
    pci(tmp_path, "0000:66:00.1", "0x1022", "0x17f0")
    (npu,) = devices_in_sysfs(tmp_path)
    assert npu.problem and not npu.driver


def test_sysfs_with_an_unknown_npu(tmp_path: Path) -> None:
    folder = pci(tmp_path, "0000:66:00.1", "0x1022", "0x17f9", "amdxdna")
    (folder / "accel").mkdir()
    (npu,) = devices_in_sysfs(tmp_path)
    assert (npu.kind, npu.device) == ("npu", "17f9")


def test_device_files_and_who_may_use_them(tmp_path: Path) -> None:
    assert nodes_in_dev(tmp_path) == DeviceNodes({}, {}, {})
    (tmp_path / "dev/accel").mkdir(parents=True)
    (tmp_path / "dev/accel/accel0").touch()
    (tmp_path / "dev/kfd").touch()
    nodes = nodes_in_dev(tmp_path)
    assert nodes.accel == {str(tmp_path / "dev/accel/accel0"): True}
    assert nodes.kfd == {str(tmp_path / "dev/kfd"): True}


def test_nothing_at_all_is_no_error(tmp_path: Path) -> None:
    assert list(devices_in_sysfs(tmp_path)) == []
    assert look_for_devices("macos", tmp_path).devices == ()
    assert look_for_devices("other", tmp_path).problems == ()
