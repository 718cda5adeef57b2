"""Runs the system's own programs: none that a workspace may have brought, none for ever.

No shell, no input, a time limit, and a folder of their own to run in. Knows nothing of what
they print.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from fimble import system
from fimble.doctor.output import decode_output, without_clixml

__all__ = ["ProgramOutput", "run_for_powershell", "run_program"]

#: Seconds for a program that looks at a device; some wake it up first.
TIME_LIMIT = 20.0
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    """``text`` is standard output, ``errors`` standard error, as far as they were read.

    ``code`` is None for a program that ran out of time or could not be started; ``problem``
    says so.
    """

    text: str = ""
    errors: str = ""
    code: int | None = None
    problem: str = ""


def run_program(
    command: Sequence[str | Path],
    *,
    timeout: float = TIME_LIMIT,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> ProgramOutput:
    """What the program says; never raises. ``command`` begins with an absolute path.

    Runs in ``cwd``, or in an empty folder that is deleted afterwards. After ``timeout``
    seconds it and its children are ended, and what they had written until then is returned.
    """
    if not Path(command[0]).is_absolute():
        raise ValueError(f"{command[0]} is no absolute path")
    with (
        tempfile.TemporaryDirectory(prefix="fimble-doctor-", ignore_cleanup_errors=True) as own,
        # Files, not pipes: a child that lives on would hold a pipe open.
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        code, problem = _run(
            [str(part) for part in command], out, err, timeout, environ, cwd or own
        )
        return ProgramOutput(_read(out), _read(err), code, problem)


def _run(
    command: list[str],
    out: IO[bytes],
    err: IO[bytes],
    timeout: float,
    environ: Mapping[str, str] | None,
    cwd: Path | str,
) -> tuple[int | None, str]:
    """(exit code, what went wrong)."""
    name = Path(command[0]).name
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=cwd,
            env=None if environ is None else dict(environ),
            creationflags=system.NO_WINDOW,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        return None, f"{name} cannot be started: {reason}"
    try:
        return process.wait(timeout), ""
    except subprocess.TimeoutExpired:
        _end(process.pid)
        process.kill()
        process.wait()
        return None, f"{name} did not end within {timeout:.0f} s"


def _end(pid: int) -> None:
    """Ends the children of ``pid``; who is gone already is no matter."""
    try:
        children = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return
    for child in children:
        system.stop_process(child.pid, patience=1.0)


def _read(stream: IO[bytes]) -> str:
    stream.seek(0)
    return without_clixml(decode_output(stream.read(_MOST_BYTES)))


def run_for_powershell(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """``subprocess.run`` as ``system.powershell_json`` uses it, by way of ``run_program``.

    Raises SubprocessError where there is no answer.
    """
    done = run_program(command, timeout=options.get("timeout", TIME_LIMIT))
    if done.code is None:
        raise subprocess.SubprocessError(done.problem)
    return subprocess.CompletedProcess(list(command), done.code, done.text, done.errors)
