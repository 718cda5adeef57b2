"""Provider libraries: which one may run in the engine, and how the runtime gets it.

A provider library is code. It comes from where the runtime's own distributions are, or from
where the user said in so many words; never from a model's folder, a workspace or the current
directory. The runtime looks for some of them by itself, through variables that are made
trustworthy here before anything is opened. Knows nothing of models but their folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

from fimble.errors import LoadFailed
from fimble.models.providers import plugin_libraries

__all__ = ["clean_environment", "is_registered", "pass_library", "trusted_library"]

#: Variables through which the runtime finds a library by itself: its full path. Without one
#: it looks in the current directory.
_VARIABLES = {"AMDGPU": "AMDGPU_EP_PATH", "RyzenAI": "RYZENAI_EP_PATH"}
#: Further ones that lead to code of a provider.
_PLACES = ("RYZEN_AI_INSTALLATION_PATH", "ORT_DYLIB_PATH")
#: Under which name a plug-in registers its provider, where that is not ours.
_PLUGIN_NAMES = {"WebGPU": "WebGpuExecutionProvider", "AMDGPU": "amdgpu"}

#: What is registered in this process. Never taken back: the runtime aborts when a provider
#: goes while a model lives.
_registered: dict[str, Path] = {}


def clean_environment(
    environ: MutableMapping[str, str] = os.environ, *, started_in: str = ""
) -> list[str]:
    """Removes what would lead the runtime to a library that nobody means; a sentence for each.

    A relative path depends on the folder that we happen to be in. ``started_in`` is where
    the command was given that started the engine: in all likelihood a workspace.
    """
    names = {name for name in environ if name.upper().endswith("_EP_PATH")} | set(_PLACES)
    said = []
    for name in sorted(names & set(environ)):
        value = environ[name].strip().strip('"')
        path = Path(value)
        if not value or not path.is_absolute():
            why = "it is not an absolute path"
        elif name not in _PLACES and _is_workspace(started_in) and _inside(path, started_in):
            why = "it leads into the folder from which the engine was started"
        else:
            continue
        del environ[name]
        said.append(f"The variable {name} is not used: {why}.")
    return said


def trusted_library(
    provider: str,
    package: Path,
    *,
    setting: str = "",
    libraries: Mapping[str, Path] | None = None,
) -> Path | None:
    """The library of ``provider`` (the runtime's spelling); None where it needs none, or none
    was found. ``setting`` is the user's own choice, ``package`` the model's folder.

    Raises LoadFailed for a library that must not run, or is not there.
    """
    if setting:
        path = Path(setting)
        if not path.is_absolute() or not path.is_file():
            raise LoadFailed(
                f"There is no provider library {setting}.",
                next_step="Give the full path of the library to --provider-library.",
            )
    else:
        known = plugin_libraries() if libraries is None else libraries
        if provider not in known:
            return None
        path = known[provider]
    if _inside(path, package):
        raise LoadFailed(
            f"The provider library {path} lies in the folder of the model {package}. A model is "
            "data: no code from its folder is run.",
            next_step="Install the provider from its maker, elsewhere.",
        )
    return path


def pass_library(
    og: Any, provider: str, library: Path | None, environ: MutableMapping[str, str] = os.environ
) -> None:
    """Lets the runtime ``og`` have the library, and no other one. Raises LoadFailed."""
    variable = _VARIABLES.get(provider)
    if variable is not None:
        if library is None:
            environ.pop(variable, None)
        else:
            environ[variable] = str(library)
        return
    if library is None or _registered.get(provider) == library:
        return
    if provider in _registered:
        raise LoadFailed(
            f"The provider {provider} is registered already, from {_registered[provider]}.",
            next_step="Run `fimble engine stop`, then start the engine with the other library.",
        )
    register = getattr(og, "register_execution_provider_library", None)
    if register is None:
        raise LoadFailed(
            f"The installed onnxruntime-genai takes no plug-in providers such as {provider}.",
            next_step="Install onnxruntime-genai 0.18 or later.",
        )
    try:
        register(_PLUGIN_NAMES.get(provider, provider), str(library))
    except (RuntimeError, OSError) as error:
        raise LoadFailed(
            f"The plug-in of the provider {provider}, {library}, cannot be registered: "
            f"{' '.join(str(error).split())}",
            next_step="Install it in the release that fits the installed onnxruntime-genai "
            "(`fimble doctor` shows it), with what it depends on.",
        ) from error
    _registered[provider] = library


def is_registered(provider: str) -> bool:
    """Whether a plug-in was registered in this process."""
    return provider in _registered


def _inside(path: Path, folder: Path | str) -> bool:
    """Also through symbolic links, in either direction."""
    outer = Path(folder)
    return path.is_relative_to(outer) or path.resolve().is_relative_to(outer.resolve())


def _is_workspace(folder: str) -> bool:
    """Not where everything of the user's lies below it, or all there is."""
    if not folder:
        return False
    return not Path.home().resolve().is_relative_to(Path(folder).resolve())
