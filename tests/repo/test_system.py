"""Each branch of the one module that knows operating systems."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path, PurePosixPath, PureWindowsPath

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fimble import system
from fimble.errors import FimbleError
from fimble.system import processes

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="file modes are POSIX's")


def test_fimble_home_moves_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path / "elsewhere"))
    folders = (
        system.models_dir(),
        system.logs_dir(),
        system.config_dir(),
        system.runtime_dir(),
        system.templates_dir(),
    )
    assert all(folder.parent == tmp_path / "elsewhere" for folder in folders)
    assert len(set(folders)) == 5


def test_programs_are_found_in_absolute_folders_of_the_path_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suffix = ".exe" if sys.platform == "win32" else ""
    for folder in ("here", "there"):
        program = tmp_path / folder / f"tool{suffix}"
        program.parent.mkdir()
        program.write_bytes(b"")
        program.chmod(0o755)
    monkeypatch.chdir(tmp_path / "here")
    for relative in ("", ".", os.curdir):
        assert system.find_program("tool", {"PATH": relative}) is None
    path = os.pathsep.join((".", str(tmp_path / "none"), str(tmp_path / "there")))
    assert system.find_program("tool", {"PATH": path}) == tmp_path / "there" / f"tool{suffix}"
    assert system.find_program("none", {"PATH": path}) is None


@pytest.mark.parametrize("blank", ["", "  "])
def test_blank_fimble_home_counts_as_unset(blank: str) -> None:
    assert system.home({"FIMBLE_HOME": blank}) == system.home({})


def test_relative_fimble_home_does_not_move_with_the_working_directory(tmp_path: Path) -> None:
    assert system.home({"FIMBLE_HOME": "state"}).is_absolute()


# source, platform, path; the URIs are those that real editors send
URIS = [
    ("file:///home/u/a%20b.py", "linux", PurePosixPath("/home/u/a b.py")),
    ("file:///home/u/%E6%BC%A2.py", "linux", PurePosixPath("/home/u/漢.py")),
    ("file:///home/u/100%25.py", "linux", PurePosixPath("/home/u/100%.py")),
    ("file:///c%3A/Users/u/a.py", "win32", PureWindowsPath("C:/Users/u/a.py")),
    ("file:///C:/Users/u/a%20b.py", "win32", PureWindowsPath("C:/Users/u/a b.py")),
    ("file:///c:/", "win32", PureWindowsPath("C:/")),
    ("file:///c:", "win32", PureWindowsPath("C:/")),
    ("file://server/share/a.py", "win32", PureWindowsPath("//server/share/a.py")),
    ("file://localhost/c:/a.py", "win32", PureWindowsPath("C:/a.py")),
    ("untitled:Untitled-1", "linux", None),
    ("vscode-notebook-cell:/a.ipynb#W0", "linux", None),
    ("file:///a%00b.py", "linux", None),
    ("file:///c:/a\ud800.py", "win32", None),
    ("file://[", "linux", None),
]


@pytest.mark.parametrize(("uri", "platform", "path"), URIS)
def test_uri_to_path(uri: str, platform: str, path: object) -> None:
    assert system.path_from_uri(uri, platform) == path


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        (PurePosixPath("/home/u/a b%.py"), "file:///home/u/a%20b%25.py"),
        (PureWindowsPath("C:/Users/u/a b.py"), "file:///c%3A/Users/u/a%20b.py"),
        (PureWindowsPath("//server/share/a.py"), "file://server/share/a.py"),
    ],
)
def test_path_to_uri(path: PurePosixPath, uri: str) -> None:
    assert system.uri_from_path(path) == uri


@pytest.mark.parametrize(
    ("path", "linux", "windows"),
    [
        ("src/a.py", True, True),
        ("..", True, True),
        ("src/.hidden", True, True),
        ("contour.py", True, True),
        ("com10.py", True, True),
        ("a.py:b", True, False),
        (".env::$DATA", True, False),
        ("CON", True, False),
        ("nul.tar.gz", True, False),
        ("src/Aux .py", True, False),
        ("com1", True, False),
        ("LPT\u00b9.txt", True, False),
        ("conin$", True, False),
        (".env.", True, False),
        ("src /a.py", True, False),
        ("a\0b", False, False),
        ("\ud800", False, False),
    ],
)
def test_names_that_mean_more_than_a_file(path: str, linux: bool, windows: bool) -> None:
    assert system.is_plain_name(PurePosixPath("/w", path), "linux") is linux
    assert system.is_plain_name(PureWindowsPath("C:/w", PureWindowsPath(path)), "win32") is windows
    assert system.is_plain_name(PureWindowsPath("//server/share/w", path), "win32") is windows


path_names = st.text(
    st.characters(exclude_characters='/\\:*?"<>|\0', exclude_categories=["Cs", "Cc"]), min_size=1
).filter(lambda name: name not in (".", "..") and name.strip(". ") == name)


@given(st.lists(path_names, min_size=1, max_size=4))
def test_paths_survive_a_round_trip(names: list[str]) -> None:
    posix = PurePosixPath("/", *names)
    windows = PureWindowsPath("D:/", *names)
    assert system.path_from_uri(system.uri_from_path(posix), "linux") == posix
    assert system.path_from_uri(system.uri_from_path(windows), "win32") == windows


@posix_only
def test_private_files_are_never_readable_by_others(tmp_path: Path) -> None:
    secret = tmp_path / "run" / "engine.json"
    system.write_private(secret, b"token")
    system.write_private(secret, b"another")
    assert secret.read_bytes() == b"another"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert stat.S_IMODE(secret.parent.stat().st_mode) == 0o700
    assert [file.name for file in secret.parent.iterdir()] == ["engine.json"]


@posix_only
def test_what_another_user_put_there_is_neither_used_nor_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "run" / "engine.json"
    system.write_private(secret, b"token")
    assert system.read_private(secret) == b"token"
    owner = secret.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(PermissionError, match="another user"):
        system.read_private(secret)
    with pytest.raises(FimbleError, match="belongs to another user") as caught:
        system.write_private(secret, b"mine")
    assert "FIMBLE_HOME" in caught.value.next_step
    assert f"`chown -R {owner + 1} {secret.parent}`" in caught.value.next_step
    # Windows tells no such number, and shares nothing below a profile.
    monkeypatch.delattr(os, "geteuid")
    assert system.read_private(secret) == b"token"


def test_a_port_is_not_shared() -> None:
    assert system.port_options("linux") == system.port_options("darwin") == []
    ((level, option, value),) = system.port_options("win32")
    assert (level, option, value) == (socket.SOL_SOCKET, -5, 1)
    # Windows' own constant, where Python has it.
    assert getattr(socket, "SO_EXCLUSIVEADDRUSE", option) == option


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FimbleError, match="file") as caught:
        system.make_private_dir(tmp_path / "file" / "below")
    assert "FIMBLE_HOME" in caught.value.next_step


def test_a_file_is_rewritten_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    system.rewrite_file(path, b"new\r\n\xff")
    assert path.read_bytes() == b"new\r\n\xff"
    assert [file.name for file in tmp_path.iterdir()] == ["a.py"]


@posix_only
def test_a_rewritten_file_keeps_its_mode_and_a_link_stays_one(tmp_path: Path) -> None:
    path, link = tmp_path / "real" / "a.py", tmp_path / "link.py"
    path.parent.mkdir()
    path.write_bytes(b"old")
    path.chmod(0o754)
    link.symlink_to(path)
    system.rewrite_file(link, b"new")
    assert link.is_symlink() and path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o754


def test_a_file_that_is_not_ours_to_write_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    # Whoever may do everything may write what is read-only, too.
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(PermissionError, match=r"a\.py"):
        system.rewrite_file(path, b"new")
    assert path.read_bytes() == b"old"
    with pytest.raises(FileNotFoundError):
        system.rewrite_file(tmp_path / "none.py", b"new")
    assert [file.name for file in tmp_path.iterdir()] == ["a.py"]


def test_a_file_whose_new_content_has_no_room_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")

    def refuse(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space"):
        system.rewrite_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.py"]


def test_replace_waits_for_a_scanner_to_let_go(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "new").write_bytes(b"new")
    real, refusals = Path.replace, [PermissionError(13, "sharing violation")] * 2

    def flaky(self: Path, target: Path) -> Path:
        if refusals:
            raise refusals.pop()
        return real(self, target)

    monkeypatch.setattr(Path, "replace", flaky)
    system.replace_path(tmp_path / "new", tmp_path / "old")
    assert (tmp_path / "old").read_bytes() == b"new"


def test_replace_gives_up_with_the_system_s_own_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(self: Path, target: Path) -> Path:
        raise PermissionError(13, "sharing violation")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(PermissionError):
        system.replace_path(tmp_path / "new", tmp_path / "old", attempts=1)


def test_free_disk_of_a_folder_not_made_yet(tmp_path: Path) -> None:
    assert system.free_disk_bytes(tmp_path / "a" / "b") > 0


def test_lock_excludes_and_is_free_after_a_crash(tmp_path: Path) -> None:
    lock = tmp_path / "engine.lock"
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time; from pathlib import Path; from fimble import system\n"
            "with system.exclusive_lock(Path(sys.argv[1]), timeout=60):\n"
            "    print('held', flush=True); time.sleep(600)",
            str(lock),
        ],
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline().strip() == b"held"
    with pytest.raises(TimeoutError), system.exclusive_lock(lock, timeout=0.1):
        pass
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with system.exclusive_lock(lock, timeout=60):
        pass


def test_detached_children_break_away_on_windows_where_they_may() -> None:
    first, then = (way["creationflags"] for way in system.detached_options("win32"))
    assert first & 0x01000000, "not in the editor's job object"
    assert then == first & ~0x01000000
    assert then & 0x08000000, "no console window"
    assert system.detached_options("linux") == [{"start_new_session": True}]
    assert system.detached_options("darwin") == [{"start_new_session": True}]


def test_a_job_that_forbids_breaking_away_still_gets_its_engine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tried: list[int] = []

    def popen(command: object, *, creationflags: int, **rest: object) -> str:
        tried.append(creationflags)
        if creationflags & 0x01000000:
            raise PermissionError(5, "Access is denied")
        return "child"

    monkeypatch.setattr(subprocess, "Popen", popen)
    with (tmp_path / "log").open("wb") as log:
        child: object = system.spawn_detached(
            ["x"], cwd=tmp_path, log=log, environ={}, platform="win32"
        )
    assert child == "child"
    assert len(tried) == 2


@pytest.mark.parametrize(("platform", "start"), [("linux", 250.0), ("win32", 1250.0)])
def test_a_start_stays_the_same_when_the_clock_is_set(
    platform: str, start: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = 0.0

    class Process:
        """As psutil tells it: Windows notes the hour, Linux adds the time since it started."""

        def create_time(self) -> float:
            return 1250.0 + (clock if platform == "linux" else 0.0)

    monkeypatch.setattr(psutil, "boot_time", lambda: 1000.0 + clock)
    assert system.start_of(Process(), platform) == start  # type: ignore[arg-type]
    clock = 3600.0
    assert system.start_of(Process(), platform) == start  # type: ignore[arg-type]


def test_who_listens_on_a_port_is_told_apart_from_who_does_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert system.listens_on(os.getpid(), port)
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        assert not system.listens_on(child.pid, port)
        child.communicate(b"\n")
    assert not system.listens_on(os.getpid(), port)
    assert not system.listens_on(child.pid, port)


@pytest.mark.parametrize("hidden", [psutil.AccessDenied(1), NotImplementedError(), None])
def test_where_the_system_hides_who_listens_everybody_may(
    hidden: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connections(_self: psutil.Process, kind: str) -> list[object]:
        if hidden is None:
            return []
        raise hidden

    monkeypatch.setattr(psutil.Process, "net_connections", connections)
    monkeypatch.setattr(processes, "_tells_of_listeners", processes._tells_of_listeners.__wrapped__)
    assert system.listens_on(os.getpid(), 1)


def test_detached_child_runs_and_is_stopped(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        child = system.spawn_detached(
            [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"],
            cwd=tmp_path,
            log=log,
            environ=os.environ,
        )
    started = system.process_started_at(child.pid)
    while b"up" not in (tmp_path / "log").read_bytes():
        time.sleep(0.02)
    assert system.is_alive(child.pid, started)
    assert not system.is_alive(child.pid, started - 1000), "another process with a reused id"
    reaper = threading.Thread(target=child.wait)
    reaper.start()
    system.stop_process(child.pid)
    reaper.join()
    assert not system.is_alive(child.pid)
    assert system.process_started_at(child.pid) == 0.0
    system.stop_process(child.pid)


@pytest.mark.parametrize("code_page", ["cp1252", "ascii"])
def test_console_with_a_legacy_code_page_takes_any_character(code_page: str) -> None:
    script = "from fimble import system; system.use_utf8_console(); print('✓ 漢 😀')"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONIOENCODING": code_page},
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode("utf-8").strip() == "✓ 漢 😀"


# --- what there is in this machine ---------------------------------------------------------


@pytest.mark.parametrize(
    ("platform", "name"),
    [("win32", "windows"), ("linux", "linux"), ("darwin", "macos"), ("freebsd14", "other")],
)
def test_each_system_has_the_name_that_people_know(platform: str, name: str) -> None:
    assert system.operating_system(platform) == name


def test_memory_that_can_be_had_is_a_part_of_all() -> None:
    available, total = system.available_memory()
    assert 0 < available <= total


class PowerShell:
    """Answers as Windows' own would: with ``said`` around the marked JSON."""

    def __init__(self, said: str | Exception) -> None:
        self.said = said
        self.commands: list[list[str]] = []

    def __call__(self, command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        if isinstance(self.said, Exception):
            raise self.said
        return subprocess.CompletedProcess(command, 0, self.said, "")

    def ask(self, platform: str = "win32", root: str = "C:\\Windows") -> object:
        environ = {"SYSTEMROOT": root}
        return system.powershell_json("Get-X", run=self, platform=platform, environ=environ)


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ('<<fimble{"a": 1}fimble>>\r\n', {"a": 1}),
        ("Welcome, user!\r\n<<fimble[1, 2]fimble>>\r\nBye.\r\n", [1, 2]),
        ("<<fimblefimble>>", None),
        ("<<fimble{fimble>>", None),
        ("<<fimble{}", None),
        ("Access denied.", None),
        ("", None),
        (OSError("no such file"), None),
        (subprocess.TimeoutExpired("powershell", 1), None),
    ],
)
def test_powershells_answer_is_read_out_of_what_it_prints(
    said: str | Exception, answer: object
) -> None:
    shell = PowerShell(said)
    assert shell.ask() == answer
    ((program, *options, script),) = shell.commands
    assert program == r"C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe"
    assert options == ["-NoProfile", "-NonInteractive", "-Command"]
    assert "(Get-X)" in script


@pytest.mark.parametrize(("platform", "root"), [("linux", "C:\\Windows"), ("win32", "")])
def test_no_other_systems_powershell_is_started(platform: str, root: str) -> None:
    shell = PowerShell("<<fimble1fimble>>")
    assert shell.ask(platform, root) is None
    assert shell.commands == []
