"""One engine a user: started once, found again, replaced when it died, gone when idle."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import psutil
import pytest

from fimble import system
from fimble.engine import control, launcher
from fimble.engine.address import (
    EngineAddress,
    address_path,
    read_address,
    work_dir,
    write_address,
)
from fimble.engine.launcher import find_running, log_path, start_engine
from fimble.engine.options import EngineOptions, options_from_arguments
from fimble.engine.protocol import PROTOCOL_VERSION
from fimble.errors import EngineUnavailable, RuntimeMissing
from tests.support.slow import make_slow_package
from tests.support.waiting import PATIENCE, until


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A FIMBLE_HOME for each test, and no engine left behind."""
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path / "home"))
    yield tmp_path / "home"
    control.stop()


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_slow_package(tmp_path_factory.mktemp("packages") / "slow")


def engines_of(home: Path) -> list[int]:
    """Processes that were started for this home."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if "fimble.engine" in command:
            try:
                if process.environ().get("FIMBLE_HOME") == str(home):
                    found.append(process.pid)
            except psutil.Error:
                continue
    return found


def kill(pid: int) -> None:
    """As a crash would: no chance to clean up."""
    psutil.Process(pid).kill()
    until(lambda: not system.is_alive(pid))


# --- start, status, stop -----------------------------------------------------------------


def test_start_status_stop(home: Path) -> None:
    assert control.status() is None
    assert not control.stop()
    started = control.start(EngineOptions()).to_json()
    assert set(started) >= {"running", "pid", "port", "version", "uptime_s", "models", "slots"}
    assert started["running"] and started["state"] == "idle" and started["models"] == []
    again = control.start(EngineOptions())
    assert again.pid == started["pid"]
    assert control.stop()
    assert control.status() is None
    until(lambda: not engines_of(home))
    assert not address_path().exists()


def test_the_address_is_the_owners_alone() -> None:
    address = start_engine(EngineOptions())
    assert len(address.secret) >= 32
    if sys.platform != "win32":
        assert stat.S_IMODE(address_path().stat().st_mode) == 0o600
        assert stat.S_IMODE(system.runtime_dir().stat().st_mode) == 0o700


def test_the_engine_works_in_a_private_folder(home: Path) -> None:
    """The runtime loads provider libraries from the current directory."""
    address = start_engine(EngineOptions())
    assert Path(psutil.Process(address.pid).cwd()) == work_dir()
    assert list(work_dir().iterdir()) == []
    if sys.platform != "win32":
        assert stat.S_IMODE(work_dir().stat().st_mode) == 0o700


def test_run_directly_it_leaves_the_workspace_before_it_loads_anything(
    home: Path, tmp_path: Path
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "libonnxruntime_providers_ryzenai.so").write_bytes(b"planted")
    command = [sys.executable, "-m", "fimble.engine"]
    with subprocess.Popen(command, cwd=workspace, stderr=subprocess.DEVNULL) as process:
        until(lambda: find_running() is not None)
        assert Path(psutil.Process(process.pid).cwd()) == work_dir()
        process.send_signal(signal.SIGTERM)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends a process at once")
def test_sigterm_ends_it_cleanly() -> None:
    address = start_engine(EngineOptions())
    os.kill(address.pid, signal.SIGTERM)
    until(lambda: not system.is_alive(address.pid))
    assert not address_path().exists()
    assert log_path().read_text(encoding="utf-8").rstrip().endswith("ended")


# --- one a user --------------------------------------------------------------------------


def test_two_launchers_at_once_start_one_engine(home: Path) -> None:
    with ThreadPoolExecutor() as pool:
        addresses = list(pool.map(lambda _: start_engine(EngineOptions()), range(4)))
    assert len({address.pid for address in addresses}) == 1
    assert len(engines_of(home)) == 1


def test_two_processes_that_launch_at_once_start_one_engine(home: Path) -> None:
    code = (
        "from fimble.engine import control; from fimble.engine.options import EngineOptions; "
        "print(control.start(EngineOptions()).pid)"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    pids = {run.communicate(timeout=PATIENCE)[0].strip() for run in runs}
    assert pids == {str(engines_of(home)[0])}


def test_an_engine_started_by_hand_beside_another_ends(home: Path) -> None:
    start_engine(EngineOptions())
    second = subprocess.run(
        [sys.executable, "-m", "fimble.engine"],
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert second.returncode == 1
    assert "Another engine of this user is running." in second.stderr
    assert len(engines_of(home)) == 1


# --- what a crash leaves behind ----------------------------------------------------------


def test_a_file_of_a_dead_process_is_ignored_and_replaced() -> None:
    first = start_engine(EngineOptions())
    kill(first.pid)
    assert address_path().exists()
    assert find_running() is None
    second = start_engine(EngineOptions())
    assert second.pid != first.pid
    assert find_running() == second


def test_a_process_id_that_is_a_strangers_now_is_no_engine() -> None:
    ended = start_engine(EngineOptions())
    kill(ended.pid)
    write_address(replace(ended, pid=os.getpid()))
    assert find_running() is None
    assert not control.stop(), "a stranger must not be stopped"


def test_a_file_of_another_boot_is_no_engine_though_id_and_start_agree() -> None:
    """The start counts from the system's, on Linux: after a restart both may be another's."""
    ended = start_engine(EngineOptions())
    kill(ended.pid)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as bystander:
        began = system.process_started_at(bystander.pid)
        write_address(replace(ended, pid=bystander.pid, started_at=began))
        assert find_running() is None
        assert not control.stop(), "a stranger must not be stopped"
        engine = start_engine(EngineOptions())
        assert engine.pid != bystander.pid and find_running() == engine
        assert bystander.poll() is None
        bystander.kill()


def test_a_port_that_another_server_took_is_no_engine() -> None:
    class Stranger(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"pid": 1}')

        def log_message(self, format: str, *args: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Stranger)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pid = os.getpid()
    write_address(
        EngineAddress(
            pid=pid,
            started_at=system.process_started_at(pid),
            port=server.server_port,
            secret="x",
            version="0",
            protocol=PROTOCOL_VERSION,
        )
    )
    assert find_running() is None
    server.shutdown()
    server.server_close()
    address_path().unlink()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid": "x"}', b"\xff"])
def test_a_damaged_file_is_no_engine(content: bytes) -> None:
    system.write_private(address_path(), content)
    assert read_address() is None
    assert find_running() is None
    assert start_engine(EngineOptions()).port > 0


def speaks(engine: EngineAddress, protocol: int) -> EngineAddress:
    """The engine, as if it were of a release with another protocol."""
    changed = replace(engine, protocol=protocol, version=f"0.{protocol}.9")
    system.write_private(address_path(), json.dumps(asdict(changed)).encode())
    return changed


def test_an_engine_of_an_older_protocol_is_replaced() -> None:
    old = speaks(start_engine(EngineOptions()), PROTOCOL_VERSION - 1)
    new = start_engine(EngineOptions())
    assert new.pid != old.pid
    assert not system.is_alive(old.pid)


def test_an_engine_of_a_newer_protocol_is_left_alone(home: Path) -> None:
    newer = speaks(start_engine(EngineOptions()), PROTOCOL_VERSION + 1)
    with pytest.raises(EngineUnavailable, match=re.escape(newer.version)) as caught:
        start_engine(EngineOptions())
    assert "Restart the language server" in caught.value.next_step
    assert engines_of(home) == [newer.pid]
    assert control.stop()
    assert start_engine(EngineOptions()).protocol == PROTOCOL_VERSION


def test_an_engine_of_an_older_protocol_finishes_what_it_was_asked(
    slow: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "_FINISH_SECONDS", PATIENCE)
    old = start_engine(EngineOptions())
    body = {"model": str(slow), "prompt": "def", "max_tokens": 12, "temperature": 1, "seed": 1}
    with asking(old) as client, ThreadPoolExecutor() as pool:
        assert client.post("/load", json={"model": str(slow)}).status_code == 200
        answer = pool.submit(client.post, "/v1/completions", json=body)
        until(lambda: client.get("/health").json()["waiting"])
        speaks(old, PROTOCOL_VERSION - 1)
        new = start_engine(EngineOptions())
        assert answer.result().status_code == 200
    assert new.pid != old.pid
    assert not system.is_alive(old.pid)


@pytest.mark.parametrize("content", [None, b"{"])
def test_an_engine_whose_file_is_lost_writes_it_again(content: bytes | None) -> None:
    running = start_engine(EngineOptions())
    if content is None:
        address_path().unlink()
    else:
        address_path().write_bytes(content)
    until(lambda: read_address() == running)
    assert start_engine(EngineOptions()) == running


def test_an_engine_that_cannot_say_where_it_is_ends(home: Path) -> None:
    (address_path() / "in the way").mkdir(parents=True)
    with pytest.raises(EngineUnavailable, match="cannot use its files") as caught:
        start_engine(EngineOptions())
    assert str(home) in caught.value.message
    until(lambda: not engines_of(home))


# --- when it cannot start ----------------------------------------------------------------


def test_a_missing_runtime_is_said_in_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two distributions at once, as pip allows: a second one's metadata is enough."""
    second = tmp_path / "site" / "onnxruntime_genai_cuda-0.13.1.dist-info"
    second.mkdir(parents=True)
    (second / "METADATA").write_text("Name: onnxruntime-genai-cuda\nVersion: 0.13.1\n")
    places = [str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, places)))
    with pytest.raises(RuntimeMissing) as caught:
        start_engine(EngineOptions())
    assert "onnxruntime-genai and onnxruntime-genai-cuda" in caught.value.message
    assert "pip uninstall" in caught.value.next_step


def test_an_engine_that_breaks_at_its_start_shows_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "uvicorn.py").write_text("raise SystemExit('no uvicorn today')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(EngineUnavailable, match="no uvicorn today") as caught:
        start_engine(EngineOptions())
    assert str(log_path()) in caught.value.next_step


def test_a_large_log_is_put_aside(home: Path) -> None:
    log_path().parent.mkdir(parents=True)
    log_path().write_bytes(b"x" * 1_000_001)
    start_engine(EngineOptions())
    assert log_path().stat().st_size < 10_000
    assert (log_path().parent / "engine.log.1").stat().st_size == 1_000_001


# --- idle --------------------------------------------------------------------------------


SECOND = 1 / 60  # in minutes


def asking(address: EngineAddress) -> httpx.Client:
    headers = {"Authorization": f"Bearer {address.secret}"}
    return httpx.Client(base_url=address.url, headers=headers, trust_env=False, timeout=PATIENCE)


def test_an_idle_engine_unloads_its_model_and_loads_it_again(tiny: Path) -> None:
    address = start_engine(EngineOptions(idle_unload_minutes=SECOND, idle_exit_minutes=0))
    with asking(address) as client:
        for _ in range(2):
            assert client.post("/load", json={"model": str(tiny)}).status_code == 200
            until(lambda: client.get("/health").json()["state"] == "idle")
            assert client.get("/v1/models").json()["data"] == []
    assert system.is_alive(address.pid)


def test_an_idle_engine_ends(home: Path) -> None:
    address = start_engine(EngineOptions(idle_unload_minutes=0, idle_exit_minutes=SECOND))
    until(lambda: not system.is_alive(address.pid))
    assert not address_path().exists()
    assert "idle for" in log_path().read_text(encoding="utf-8")
    assert start_engine(EngineOptions()).pid != address.pid


def test_idle_limits_of_zero_mean_never() -> None:
    address = start_engine(EngineOptions(idle_unload_minutes=0, idle_exit_minutes=0))
    time.sleep(0.3)
    assert system.is_alive(address.pid)


# --- options -----------------------------------------------------------------------------


def test_options_survive_the_command_line() -> None:
    options = EngineOptions(
        model="/a folder/with = signs",
        context_tokens=1024,
        slots=3,
        threads=2,
        idle_unload_minutes=0.5,
        idle_exit_minutes=0,
    )
    assert options_from_arguments(options.to_arguments()) == options


@pytest.mark.parametrize("argument", ["--slots=0", "--context-tokens=1", "--threads=-1", "--x"])
def test_wrong_options_are_refused(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        options_from_arguments([argument])
    assert caught.value.code == 2
    assert argument.split("=")[0] in capsys.readouterr().err
