"""A GPU's provider where there is no GPU: the WebGPU plug-in on SwiftShader, a Vulkan in software.

SwiftShader and the Vulkan loader are files of Debian's chromium-common, the plug-in is a wheel of
PyPI's. Nothing is installed: both are unpacked into the tests' cache folder. What cannot be had is
a skipped test that names the reason.
"""

from __future__ import annotations

import functools
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from fimble import system
from fimble.models.runtimes import find_runtime
from tests.support.real_model import cache_dir

__all__ = ["SoftwareGpu", "software_gpu"]

_PLUGIN = "onnxruntime-ep-webgpu==0.4.0"
_LIBRARY = "onnxruntime_ep_webgpu/libonnxruntime_providers_webgpu.so"
_INSTALLED = Path("/usr/lib/chromium")
_LOADER, _ICD = "libvulkan.so.1", "vk_swiftshader_icd.json"
_VULKAN = (_LOADER, _ICD, "libvk_swiftshader.so")


@dataclass(frozen=True, slots=True)
class SoftwareGpu:
    """``library`` is the plug-in, ``vulkan`` the folder of what it computes with."""

    library: Path
    vulkan: Path

    @contextmanager
    def offered(self) -> Iterator[None]:
        """Processes that are started in the block find the device."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("VK_ICD_FILENAMES", str(self.vulkan / _ICD))
            patch.setenv("LD_LIBRARY_PATH", str(self.vulkan))
            patch.setenv("ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER", "1")
            yield


def software_gpu() -> SoftwareGpu:
    """Skips the test, with the reason, where it cannot be had."""
    found, reason = _software_gpu()
    if found is None:
        pytest.skip(f"WebGPU on SwiftShader: {reason}")
    return found


class _CannotBeHad(Exception):
    """Why there is none here."""


@functools.cache
def _software_gpu() -> tuple[SoftwareGpu | None, str]:
    release = find_runtime().version
    if [int(part) for part in release.split(".")[:2]] < [0, 18]:
        return None, f"onnxruntime-genai {release} is older than the plug-in"
    if system.operating_system() != "linux" or platform.machine() != "x86_64":
        return None, "its parts are for Linux on x86-64"
    folder = cache_dir() / "webgpu"
    try:
        with system.exclusive_lock(cache_dir() / "webgpu.lock", timeout=900):
            plugin = _kept(folder / "plugin-0.4.0", _unpack_plugin)
            vulkan = _kept(folder / "vulkan", _unpack_vulkan)
    except _CannotBeHad as error:
        return None, str(error)
    except (OSError, subprocess.SubprocessError, zipfile.BadZipFile) as error:
        return None, f"{type(error).__name__}: {error}"
    return SoftwareGpu(plugin / _LIBRARY, vulkan), ""


def _kept(folder: Path, make: Callable[[Path], None]) -> Path:
    """The folder, made whole or not at all."""
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            made = Path(work) / "made"
            made.mkdir()
            make(made)
            made.rename(folder)
    return folder


def _unpack_plugin(folder: Path) -> None:
    work = folder.parent
    # No more than what a wheel is for: nothing of it is run here.
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    _run([*pip, "--dest", ".", _PLUGIN], work)
    (wheel,) = work.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extract(_LIBRARY, folder)


def _unpack_vulkan(folder: Path) -> None:
    source = _INSTALLED
    if not all((source / name).is_file() for name in _VULKAN):
        missing = [tool for tool in ("apt-get", "dpkg-deb") if shutil.which(tool) is None]
        if missing:
            raise _CannotBeHad(f"there is no {missing[0]} to get chromium-common with")
        work = folder.parent
        _run(["apt-get", "download", "chromium-common"], work)
        (package,) = work.glob("*.deb")
        _run(["dpkg-deb", "-x", package.name, "unpacked"], work)
        source = work / "unpacked/usr/lib/chromium"
    for name in _VULKAN:
        if not (source / name).is_file():
            raise _CannotBeHad(f"Debian's chromium-common has no {name}")
        shutil.copy(source / name, folder / name)


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise _CannotBeHad(f"{command[0]} failed: {' '.join(last)}")
