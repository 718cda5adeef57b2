"""Installed packages: AMD's five and ours, on machines that can and cannot run them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fimble.doctor.packages import (
    look_at_packages,
    package_checks,
    severity_of,
)
from fimble.errors import ModelNotFound
from fimble.models.device_memory import DeviceMemory
from fimble.models.providers import Machine
from fimble.models.store import Store
from tests.doctor.test_devices import lines
from tests.support.amd_packages import AMD_PACKAGES, make_amd_package
from tests.support.tiny import make_tiny_package

LINUX = Machine("linux", runtimes=(("onnxruntime-genai", "0.18.0"),))
ENOUGH = DeviceMemory(64 << 30, 64 << 30, "of the system")


def plenty(provider: str) -> DeviceMemory:
    return ENOUGH


@pytest.fixture
def store(tmp_path: Path) -> Store:
    (tmp_path / "models").mkdir()
    return Store(tmp_path / "models")


def test_no_model_is_a_doubt_with_the_line_that_gets_one(store: Store) -> None:
    facts = look_at_packages(store)
    assert isinstance(facts.choice, ModelNotFound)
    (check,) = package_checks(facts, LINUX, plenty)
    assert (check.name, check.status) == ("models", "warn")
    assert "fimble model pull" in check.next_step


def test_a_package_that_runs_here(store: Store) -> None:
    make_tiny_package(store.root / "tiny")
    facts = look_at_packages(store)
    (check,) = package_checks(facts, LINUX, plenty)
    assert (check.name, check.status) == ("model tiny", "ok")
    assert "the default" in check.detail and "2,048 of 2,048 tokens" in check.detail
    assert severity_of(facts.packages)("CPU") == "fail"
    assert severity_of(facts.packages)("RyzenAI") == "ok"


def test_a_file_that_is_cut_short_fails_for_the_default_only(store: Store) -> None:
    for name in ("tiny", "qwen2.5-coder-0.5b"):
        package = make_tiny_package(store.root / name)
        data = package / "model.onnx.data"
        data.write_bytes(data.read_bytes()[:1000])
    checks = package_checks(look_at_packages(store), LINUX, plenty)
    assert lines(checks) == [("model qwen2.5-coder-0.5b", "fail"), ("model tiny", "warn")]
    assert all("cut short" in check.detail for check in checks)


def test_a_configuration_that_cannot_be_read(store: Store) -> None:
    (store.root / "broken").mkdir()
    (store.root / "broken" / "genai_config.json").write_bytes(b"{")
    checks = package_checks(look_at_packages(store), LINUX, plenty)
    assert lines(checks) == [("model broken", "fail")]


def test_several_without_a_choice(store: Store) -> None:
    for name in ("one", "two"):
        make_tiny_package(store.root / name)
    checks = package_checks(look_at_packages(store), LINUX, plenty)
    assert lines(checks) == [("models", "warn"), ("model one", "ok"), ("model two", "ok")]
    assert "--model" in checks[0].next_step


def test_too_little_memory_fails_with_the_planners_advice(store: Store) -> None:
    make_tiny_package(store.root / "tiny")
    little = DeviceMemory(1 << 20, 1 << 30, "of the system")
    (check,) = package_checks(look_at_packages(store), LINUX, lambda provider: little)
    assert check.status == "fail" and "free of the system" in check.detail and check.next_step


def test_an_unfinished_pull_is_named(store: Store) -> None:
    make_tiny_package(store.root / "tiny")
    store.partial("qwen2.5-coder-0.5b").mkdir(parents=True)
    (store.partial("x").parent / ".locks").mkdir()
    checks = package_checks(look_at_packages(store), LINUX, plenty)
    assert lines(checks) == [("model tiny", "ok"), ("unfinished qwen2.5-coder-0.5b", "warn")]
    assert "fimble model pull qwen2.5-coder-0.5b" in checks[1].next_step


PROVIDERS = {"A": "DML", "B": "AMDGPU", "C": "DML", "D": "RyzenAI", "E": "RyzenAI"}


@pytest.mark.parametrize("letter", sorted(AMD_PACKAGES))
def test_each_of_amds_packages_is_refused_here_with_the_next_step(
    store: Store, letter: str
) -> None:
    make_amd_package(store.root, letter)
    facts = look_at_packages(store)
    (check,) = package_checks(facts, LINUX, plenty)
    assert check.status == "fail" and check.next_step
    severity = severity_of(facts.packages)
    assert severity(PROVIDERS[letter]) == "fail"
    assert {severity(each) for each in ("CPU", "WebGPU", "cuda")} == {"ok"}
