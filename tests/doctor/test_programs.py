"""Which programs are run, and that none of them can harm or hold up the doctor."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fimble import system
from fimble.doctor.programs import run_for_powershell, run_program
from tests.support.waiting import until


def program(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\necho ran\n", encoding="utf-8", newline="\n")
    path.chmod(0o755)
    return path


def test_a_relative_path_is_never_run() -> None:
    with pytest.raises(ValueError, match="no absolute path"):
        run_program(["tool"])


# --- how it is run -------------------------------------------------------------------------


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_what_it_says_and_how_it_ends() -> None:
    said = run_program(python("import sys; print('out'); sys.exit('err')"))
    assert (said.text, said.errors, said.code, said.problem) == ("out\n", "err\n", 1, "")


def test_utf16_and_progress_records_are_read() -> None:
    code = "import sys; sys.stdout.buffer.write('größer'.encode('utf-16'))"
    assert run_program(python(code)).text == "größer"


def test_it_runs_in_a_folder_of_its_own_without_input(tmp_path: Path) -> None:
    said = run_program(python("import os, sys; print(os.getcwd()); print(repr(sys.stdin.read()))"))
    folder, read = said.text.splitlines()
    assert Path(folder) != Path.cwd() and not Path(folder).exists()
    assert read == "''"
    assert run_program(python("import os; print(os.getcwd())"), cwd=tmp_path).text.strip() == str(
        tmp_path
    )


def test_one_that_hangs_is_ended_with_its_children() -> None:
    """The child keeps the outputs open; what was said before is read all the same."""
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    said = run_program(python(code), timeout=10.0)
    assert said.code is None and "did not end within 10 s" in said.problem
    child = int(said.text)
    until(lambda: not system.is_alive(child))


def test_one_that_never_stops_talking_is_cut_off() -> None:
    said = run_program(python("print('x' * 5_000_000)"))
    assert len(said.text) == 1 << 20


def test_one_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken"
    path.write_bytes(b"\x7fELF")
    path.chmod(0o755)
    said = run_program([path])
    assert said.code is None and said.problem.startswith("broken cannot be started")
    assert run_program([tmp_path / "missing"]).problem


def test_powershell_that_hangs_gives_no_answer() -> None:
    with pytest.raises(subprocess.SubprocessError, match="did not end"):
        run_for_powershell(python("import time; time.sleep(600)"), timeout=1.0)
    done = run_for_powershell(python("print('<<fimble{}fimble>>')"), timeout=60.0)
    assert done.stdout == "<<fimble{}fimble>>\n"
