"""The whole look: on this machine, and where a part of it goes wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from fimble.doctor import examine
from fimble.doctor.devices import Device
from fimble.doctor.probe_devices import DeviceFacts
from fimble.models.device_memory import Gpu

MODULE = "fimble.doctor.examination"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize(
    ("probe", "name"),
    [
        ("look_for_devices", "devices"),
        ("probe_import", "runtime import"),
        ("look_at_engine", "engine"),
        ("look_at_packages", "models"),
        ("find_clients", "editors"),
    ],
)
def test_what_cannot_be_looked_at_hides_nothing_else(
    monkeypatch: pytest.MonkeyPatch, probe: str, name: str
) -> None:
    def surprise(*arguments: object) -> None:
        raise KeyError("a machine that nobody thought of")

    usual = {check.name for check in examine().checks}
    monkeypatch.setattr(f"{MODULE}.{probe}", surprise)
    report = examine()
    (failed,) = [check for check in report.checks if check.status == "fail"]
    assert failed.name == name and "nobody thought of" in failed.detail
    # A few lines are about what only the failed look would have seen.
    assert usual - {check.name for check in report.checks} <= {
        "locked memory",
        "vulkan",
        "runtime import",
    }


def test_a_gpus_memory_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    radeon = Device("gpu", "Radeon", "1002", "744c")
    gpus = [
        Gpu("Radeon RX 7900", 20 << 30, 24 << 30, 8 << 30, 16 << 30),
        Gpu("Radeon 890M", 400 << 20, 512 << 20, 12 << 30, 16 << 30),
    ]
    monkeypatch.setattr(f"{MODULE}.look_for_devices", lambda here: DeviceFacts(devices=(radeon,)))
    monkeypatch.setattr(f"{MODULE}.find_gpus", lambda: gpus)
    (shown,) = [check for check in examine().checks if check.name == "gpu memory"]
    assert shown.detail == (
        "Radeon RX 7900: 20.0 GiB free of 24.0 GiB; "
        "Radeon 890M: 400 MiB free of 512 MiB, and 12.0 GiB of the system's"
    )
