"""Which provider a package is opened with, and which libraries may come with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fimble.engine import plugins
from fimble.engine.host import ModelHost
from fimble.engine.loaded import LoadedModel
from fimble.engine.memory_room import Room, fits_beside, plan_room
from fimble.engine.metrics import Metrics
from fimble.engine.options import EngineOptions, options_from_arguments
from fimble.engine.package import PackageConfig, read_package_config
from fimble.engine.provider_choice import ProviderChoice, choose_provider, inspection_of
from fimble.errors import LoadFailed
from fimble.models.device_memory import DeviceMemory
from fimble.models.store import Store
from tests.support.amd_packages import make_amd_package

GIB = 1 << 30


def amd(folder: Path, letter: str) -> PackageConfig:
    package = Store(folder / "no-store").find(str(make_amd_package(folder, letter)))
    return read_package_config(package.path, package.name)


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "elsewhere" / "provider.so"
    path.parent.mkdir()
    path.write_bytes(b"")
    return path


# --- the provider ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("letter", "name"), [("A", "DML"), ("B", "AMDGPU"), ("C", "DML"), ("D", "RyzenAI")]
)
def test_a_packages_own_provider_comes_first(tmp_path: Path, letter: str, name: str) -> None:
    assert choose_provider(amd(tmp_path, letter), libraries={}) == ProviderChoice(name, own=True)


@pytest.mark.parametrize("setting", ["webgpu", "WebGPU", "WebGpuExecutionProvider"])
def test_what_is_set_wins(tiny: Path, setting: str) -> None:
    options = (("powerPreference", "low"),)
    choice = choose_provider(
        read_package_config(tiny), setting=setting, options=options, libraries={}
    )
    assert choice == ProviderChoice("WebGPU", own=False, options=options)


def test_its_own_provider_set_in_so_many_words_changes_nothing(tmp_path: Path) -> None:
    assert choose_provider(amd(tmp_path, "A"), setting="dml", libraries={}).own


def test_a_provider_that_nobody_knows_is_refused(tiny: Path) -> None:
    with pytest.raises(LoadFailed, match="no provider gpu") as caught:
        choose_provider(read_package_config(tiny), setting="gpu")
    assert "webgpu" in caught.value.next_step


def test_the_cpu_computes_another_ones_package_only_with_a_notice(
    tmp_path: Path, tiny: Path
) -> None:
    choice = choose_provider(amd(tmp_path, "A"), setting="cpu")
    assert choice.is_cpu and "made for the provider DML" in choice.notice
    assert choose_provider(read_package_config(tiny)) == ProviderChoice("CPU", own=True)


@pytest.mark.parametrize(
    ("letter", "why"),
    [("B", "session.disable_cpu_ep_fallback"), ("D", "com.ryzenai"), ("E", "com.ryzenai")],
)
def test_the_cpu_is_refused_where_the_graph_does_not_allow_it(
    tmp_path: Path, letter: str, why: str
) -> None:
    with pytest.raises(LoadFailed, match="cannot run on the CPU") as caught:
        choose_provider(amd(tmp_path, letter), setting="cpu")
    assert why in caught.value.message and "its own provider" in caught.value.next_step


# --- libraries ---------------------------------------------------------------------------


def test_a_library_comes_from_known_places_or_from_the_user(tiny: Path, library: Path) -> None:
    known = {"WebGPU": library}
    assert plugins.trusted_library("WebGPU", tiny, libraries=known) == library
    assert plugins.trusted_library("AMDGPU", tiny, libraries=known) is None
    assert plugins.trusted_library("AMDGPU", tiny, setting=str(library)) == library


@pytest.mark.parametrize("named", ["provider.so", "./provider.so", "/nowhere/provider.so"])
def test_a_library_is_named_by_its_full_path(
    tiny: Path, library: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.chdir(library.parent)
    with pytest.raises(LoadFailed, match="no provider library"):
        plugins.trusted_library("WebGPU", tiny, setting=named)


def test_no_library_of_a_models_folder_is_taken(tmp_path: Path, library: Path) -> None:
    with pytest.raises(LoadFailed, match="no code from its folder is run"):
        plugins.trusted_library("WebGPU", library.parent, libraries={"WebGPU": library})


def test_variables_that_lead_into_a_workspace_are_not_used(tmp_path: Path, library: Path) -> None:
    workspace = tmp_path / "workspace"
    environ = {
        "AMDGPU_EP_PATH": str(workspace / "planted.so"),
        "RYZENAI_EP_PATH": "planted.so",
        "OTHER_EP_PATH": str(library),
        "RYZEN_AI_INSTALLATION_PATH": ".",
        "PATH": "",
    }
    said = plugins.clean_environment(environ, started_in=str(workspace))
    assert environ == {"OTHER_EP_PATH": str(library), "PATH": ""}
    assert len(said) == 3 and "AMDGPU_EP_PATH is not used" in said[0]


def test_a_provider_that_is_found_through_a_variable_gets_that_library_alone(
    library: Path,
) -> None:
    environ = {"AMDGPU_EP_PATH": "what the user's shell says"}
    plugins.pass_library(None, "AMDGPU", library, environ)
    assert environ == {"AMDGPU_EP_PATH": str(library)}
    plugins.pass_library(None, "AMDGPU", None, environ)
    assert environ == {}


def test_a_plug_in_is_registered_once(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_registered", {})
    given: list[tuple[str, str]] = []
    runtime = SimpleNamespace(register_execution_provider_library=lambda *said: given.append(said))
    plugins.pass_library(runtime, "WebGPU", library)
    plugins.pass_library(runtime, "WebGPU", library)
    assert given == [("WebGpuExecutionProvider", str(library))]
    assert plugins.is_registered("WebGPU")
    with pytest.raises(LoadFailed, match="registered already"):
        plugins.pass_library(runtime, "WebGPU", library.with_name("other.so"))


def test_a_runtime_without_plug_ins_says_which_one_has_them(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins, "_registered", {})
    with pytest.raises(LoadFailed, match="takes no plug-in") as caught:
        plugins.pass_library(SimpleNamespace(), "WebGPU", library)
    assert "0.18" in caught.value.next_step


# --- memory ------------------------------------------------------------------------------


def test_the_window_is_what_fits_into_the_devices_memory(tmp_path: Path) -> None:
    config = amd(tmp_path, "A")
    found, choice = inspection_of(config), ProviderChoice("DML", own=True)
    assert found is not None
    found = replace(found, weights_bytes=9 * GIB)

    def room(free: float) -> Room:
        memory = DeviceMemory(int(free * GIB), 24 * GIB, "of the card")
        return plan_room(config, found, choice, EngineOptions(), memory)

    assert room(20) == Room(8192, 2)
    assert (room(11.5).window, room(11.5).slots) == (8192, 1), "a window is worth more than a slot"
    assert room(10.5).window == 5376 and "10.5 GiB are free of the card" in room(10.5).notice
    with pytest.raises(LoadFailed, match="too large for this machine") as caught:
        room(9)
    assert "--device-memory" in caught.value.next_step


def test_a_second_model_fits_only_where_that_is_known(tmp_path: Path) -> None:
    found, choice = inspection_of(amd(tmp_path, "A")), ProviderChoice("DML", own=True)

    def fits(free: int, *, known: bool = True) -> bool:
        memory = DeviceMemory(free * GIB, 64 * GIB, "of the card", known)
        return fits_beside(found, choice, EngineOptions(), memory)

    assert fits(8)
    assert not fits(1)
    assert not fits(64, known=False)
    assert not fits_beside(None, choice, EngineOptions(), DeviceMemory(GIB, GIB, ""))


# --- what a request asks for -------------------------------------------------------------


def test_options_reach_the_engines_process_whole() -> None:
    options = EngineOptions(
        provider="webgpu",
        provider_options=(("a", "1=2"), ("b", "")),
        provider_library="/opt/a b.so",
        device_memory=16 * GIB,
        started_in="/home/größe",
    )
    assert options_from_arguments(options.to_arguments()) == options


def test_a_request_may_choose_and_one_that_does_not_leaves_the_model_where_it_is(
    tiny: Path,
) -> None:
    loads: list[EngineOptions] = []

    def loader(config: PackageConfig, tokenizer: Any, **given: Any) -> LoadedModel:
        loads.append(given["options"])
        name = given["options"].provider
        if name == "DML":
            raise LoadFailed("no such thing here")
        info = SimpleNamespace(name=config.name, window=64)
        return SimpleNamespace(  # type: ignore[return-value]
            config=config, provider=name or "CPU", info=info, close=lambda: None
        )

    started = EngineOptions(provider_options=(("a", "1"),), model=str(tiny))
    host = ModelHost(started, Metrics(), loader)
    host.ensure("")
    host.ensure(str(tiny), "cpu")
    assert loads == [started], "it is there already"
    host.ensure(str(tiny), "webgpu")
    host.ensure(str(tiny))
    host.ensure("")
    assert [(each.provider, each.provider_options) for each in loads[1:]] == [("WebGPU", ())]
    with pytest.raises(LoadFailed, match="no such thing"):
        host.ensure("", "dml")
    assert host.loaded is not None and host.loaded.provider == "WebGPU", "it is back"
    assert host.state == "ready"
    assert host.ensure(str(tiny), "cpu").provider == "CPU", "one provider's failure is its own"
    assert [each.provider for each in loads] == ["", "WebGPU", "DML", "WebGPU", "CPU"]
