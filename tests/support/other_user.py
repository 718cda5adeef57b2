"""Code that runs as another user of this machine: a process that gives its rights away.

Python and what is imported may lie where that user can read nothing, so all of it is loaded
before. Only root can become somebody else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

__all__ = ["USER", "as_other_user", "needs_root", "public_folder"]

#: Nobody's id, on any system that keeps to the usual ranges.
USER = 60_123

needs_root = pytest.mark.skipif(
    getattr(os, "geteuid", lambda: 1)() != 0,
    reason="only root can start a process as another user",
)

_BECOME = """
import encodings.idna, http.server, json, os, socket, sys
from pathlib import Path
{imports}
os.chdir("/")
os.setgroups([])
os.setgid({user})
os.setuid({user})
"""
#: Whatever an engine may want later, while it can still be read.
_ENGINE = """
import importlib, pkgutil
import onnxruntime_genai, tokenizers, uvicorn.loops.asyncio, uvicorn.loops.auto
import uvicorn.lifespan.off, uvicorn.protocols.http.h11_impl
import fimble.engine, fimble.models
for package in (fimble.engine, fimble.models):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)

from importlib import metadata

installed = {
    found.name.lower().replace("_", "-"): found.version for found in metadata.distributions()
}

def version(name):
    if name not in installed:
        raise metadata.PackageNotFoundError(name)
    return installed[name]

metadata.version = version
"""


def as_other_user(
    code: str, *arguments: str, home: Path | None = None, engine: bool = False
) -> subprocess.Popen[str]:
    """Runs ``code`` with ``arguments`` in ``sys.argv`` and ``home`` as its FIMBLE_HOME.

    ``engine`` loads fimble's own for it.
    """
    environ = dict(os.environ)
    if home is not None:
        environ["FIMBLE_HOME"] = str(home)
    become = _BECOME.format(user=USER, imports=_ENGINE if engine else "")
    return subprocess.Popen(
        [sys.executable, "-c", become + code, *arguments],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def public_folder() -> Iterator[Path]:
    """A folder that every user may enter, and in which each may make things, as in /tmp."""
    folder = Path(tempfile.mkdtemp(prefix="fimble-public-"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
