"""System, Python, memory, disk and home; the engine; editors' clients."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fimble
from fimble import system
from fimble.doctor.checks import Check, Report
from fimble.doctor.editors import editor_check, find_clients
from fimble.doctor.engine_state import EngineFacts, engine_check, look_at_engine
from fimble.doctor.machine import MachineFacts, home_check, look_at_system, machine_checks
from fimble.engine.address import EngineAddress, address_path, write_address
from fimble.engine.control import EngineStatus
from fimble.engine.protocol import PROTOCOL_VERSION
from fimble.errors import EngineUnavailable
from tests.doctor.test_devices import lines

GOOD = MachineFacts(
    here="linux",
    os="Debian, Linux 6.1",
    architecture="x86_64",
    python="3.11.7",
    bits=64,
    executable="/usr/bin/python3",
    free_memory=8 << 30,
    total_memory=16 << 30,
    free_disk=100 << 30,
    home=Path("/home/a/.local/share/fimble"),
    home_writable=True,
)
FINE = {"system": "ok", "python": "ok", "memory": "ok", "disk": "ok", "home": "ok"}


@pytest.mark.parametrize(
    ("change", "worse"),
    [
        ({}, {}),
        ({"os": "Ubuntu, Linux 6.6.87-microsoft-standard-WSL2"}, {"system": "warn"}),
        ({"here": "windows", "os": "Microsoft Windows 11 Pro"}, {}),
        ({"here": "other", "os": "FreeBSD"}, {"system": "warn"}),
        ({"bits": 32}, {"python": "fail"}),
        ({"python": "3.9.18"}, {"python": "fail"}),
        ({"python": "3.14.0rc1"}, {}),
        ({"free_memory": 500 << 20}, {"memory": "warn"}),
        ({"free_disk": 1 << 30}, {"disk": "warn"}),
        ({"home_writable": False}, {"home": "fail"}),
    ],
)
def test_what_is_said_of_a_machine(change: dict[str, Any], worse: dict[str, str]) -> None:
    facts = replace(GOOD, **change)
    checks = [*machine_checks(facts), home_check(facts)]
    assert {check.name: check.status for check in checks} == {**FINE, **worse}


def test_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path / "not" / "yet"))
    facts = look_at_system()
    assert facts.home_writable and not (tmp_path / "not").exists(), "nothing is made"
    assert facts.here == system.operating_system()
    assert facts.free_disk > 0 and 0 < facts.free_memory <= facts.total_memory
    assert look_at_system("Windows 12").os == "Windows 12"
    (tmp_path / "file").touch()
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path / "file"))
    assert not look_at_system().home_writable


def test_locked_memory_is_a_number_of_bytes_or_no_limit() -> None:
    limit = system.memory_lock_limit()
    assert limit is None or limit >= 0


# --- the engine --------------------------------------------------------------------------

READY = EngineStatus(
    pid=7,
    port=1,
    version=fimble.__version__,
    state="ready",
    uptime_s=1.0,
    models=[{"name": "tiny", "provider": "CPU", "window": 2048, "state": "ready", "notice": ""}],
)


@pytest.mark.parametrize(
    ("facts", "status", "says"),
    [
        (EngineFacts(), "ok", "not running"),
        (EngineFacts(left_over=True), "warn", "ended without a word"),
        (EngineFacts(READY), "ok", "tiny on CPU (2048 tokens)"),
        (EngineFacts(replace(READY, models=[])), "ok", "no model loaded"),
        (EngineFacts(replace(READY, version="99.0.0", protocol=PROTOCOL_VERSION + 1)), "warn",
         "does not understand it Update this fimble too, or run `fimble engine stop`"),
        (EngineFacts(replace(READY, version="0.0.1", protocol=PROTOCOL_VERSION - 1)), "warn",
         "the next request replaces it"),
        (EngineFacts(replace(READY, state="failed", models=[])), "warn", "could not be loaded"),
        (EngineFacts(replace(READY, models=[{**READY.models[0], "notice": "Little memory."}])),
         "warn", "Little memory."),
        (EngineFacts(error=EngineUnavailable("It hangs.", next_step="Stop it.")), "fail",
         "It hangs. Stop it."),
    ],
)  # fmt: skip
def test_what_is_said_of_the_engine(facts: EngineFacts, status: str, says: str) -> None:
    check = engine_check(facts, "/log")
    assert check.status == status
    assert says in f"{check.detail} {check.next_step}"


def test_an_engine_of_another_version_that_speaks_alike_is_left_alone() -> None:
    check = engine_check(EngineFacts(replace(READY, version="0.0.1")), "/log")
    assert (check.status, check.next_step) == ("ok", "")
    assert "version 0.0.1" in check.detail and f"fimble is {fimble.__version__}" in check.detail


def test_a_crashed_engines_file_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path))
    assert look_at_engine() == EngineFacts()
    write_address(EngineAddress(2**22 + 1, 0.0, 1, "secret", "0", 1))
    assert look_at_engine() == EngineFacts(left_over=True)
    assert address_path().exists(), "nothing is changed"


# --- editors -----------------------------------------------------------------------------


def make(root: Path, file: str, text: str = "") -> Path:
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


@pytest.mark.parametrize(
    ("here", "file", "text", "editor"),
    [
        ("linux", ".vscode/extensions/someone.fimble-0.1.0/package.json", "", "VS Code"),
        ("windows", ".cursor/extensions/someone.fimble-0.1.0/package.json", "", "Cursor"),
        ("linux", ".local/share/nvim/lazy/fimble.nvim/lua/x.lua", "", "Neovim"),
        ("linux", ".local/share/nvim/site/pack/p/start/fimble/lua/x.lua", "", "Neovim"),
        ("windows", "AppData/Local/nvim-data/lazy/fimble.nvim/x.lua", "", "Neovim"),
        ("macos", ".config/nvim/lua/lsp/servers.lua", "cmd = { 'fimble', 'serve' }", "Neovim"),
        ("linux", ".config/helix/languages.toml", 'command = "fimble"', "Helix"),
        ("linux", ".emacs.d/init.el", '("fimble" "serve")', "Emacs"),
    ],
)
def test_clients_in_the_usual_places(
    tmp_path: Path, here: system.OperatingSystem, file: str, text: str, editor: str
) -> None:
    make(tmp_path, file, text)
    make(tmp_path, ".vscode/extensions/someone.other-1.0/package.json")
    make(tmp_path, ".config/nvim/init.lua", "-- nothing of ours")
    (found,) = find_clients(tmp_path, here, {})
    assert found.editor == editor and found.place.startswith(str(tmp_path))
    assert editor in editor_check([found]).detail


def test_the_users_own_folders_count(tmp_path: Path) -> None:
    make(tmp_path / "data", "nvim/lazy/fimble.nvim/x.lua")
    environ = {"XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CONFIG_HOME": "relative\0"}
    (found,) = find_clients(tmp_path / "home", "linux", environ)
    assert found.editor == "Neovim"


def test_no_client_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / ".vscode").write_bytes(b"a file where a folder is expected")
    (tmp_path / ".emacs").write_bytes(b"\xff\xfe\0binary")
    assert find_clients(tmp_path, "linux", {}) == []
    assert editor_check([]).status == "ok"


# --- the report --------------------------------------------------------------------------


def test_one_failure_is_enough() -> None:
    fine, doubt, wrong = (
        Check("a", "ok", "x"),
        Check("b", "warn", "y", "Do."),
        Check("c", "fail", "z", "Do."),
    )
    assert Report((fine, doubt), "1").ok
    report = Report((fine, doubt, wrong), "1")
    assert not report.ok
    assert report.to_json()["counts"] == {"ok": 1, "warn": 1, "fail": 1}
    assert lines(list(report.checks)) == [("a", "ok"), ("b", "warn"), ("c", "fail")]


@pytest.mark.parametrize("status", ["warn", "fail"])
def test_what_is_wrong_needs_a_next_step(status: Any) -> None:
    with pytest.raises(ValueError, match="next step"):
        Check("a", status, "x")
