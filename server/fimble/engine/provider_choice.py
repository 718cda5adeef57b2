"""Which execution provider a package is opened with: its own, or what the user set.

Decides from the package's files and the setting alone. The CPU is never a silent way out: a
large model on a CPU is not what was asked for, so it computes there only where the package
says so, or the user does and the graph can, and then there is a notice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fimble.engine.package import PackageConfig
from fimble.engine.plugins import trusted_library
from fimble.errors import FimbleError, LoadFailed
from fimble.models.genai_config import SETTABLE, canonical_provider
from fimble.models.inspection import Inspection, inspect_package
from fimble.models.providers import provider_refusal, this_machine
from fimble.models.store import Package

__all__ = ["ProviderChoice", "better_next_step", "choose_provider", "inspection_of"]

#: Operator domains that the CPU provider has kernels for.
_CPU_DOMAINS = frozenset({"", "ai.onnx", "com.microsoft", "com.microsoft.nchwc"})
_NO_FALLBACK = "session.disable_cpu_ep_fallback"


@dataclass(frozen=True, slots=True)
class ProviderChoice:
    """``name`` as the runtime spells it. ``own``: the package's, opened as it says itself.

    ``options`` are set on top of the package's; keys and values are strings, as the runtime
    wants them. ``library`` is the plug-in to hand over, ``notice`` what the user must see.
    """

    name: str
    own: bool
    options: tuple[tuple[str, str], ...] = ()
    library: Path | None = None
    notice: str = ""

    @property
    def is_cpu(self) -> bool:
        """Whether the processor computes."""
        return self.name == "CPU"


def choose_provider(
    config: PackageConfig,
    found: Inspection | None = None,
    *,
    setting: str = "",
    options: tuple[tuple[str, str], ...] = (),
    library: str = "",
    libraries: Mapping[str, Path] | None = None,
) -> ProviderChoice:
    """The provider for ``config``; ``setting`` in any spelling, empty for the package's own.

    ``found`` is what inspection says of the package, needed where another provider is set.
    ``library`` is the user's own path of a plug-in, ``libraries`` are those in known places.
    Raises LoadFailed where the package cannot run there.
    """
    own = canonical_provider(config.provider)
    name = canonical_provider(setting) if setting else own
    if setting and name.lower() not in SETTABLE:
        raise LoadFailed(
            f"There is no provider {setting}.", next_step=f"Use one of {', '.join(SETTABLE)}."
        )
    if name == "CPU":
        if own != "CPU":
            _require_cpu(config, own, found)
        return ProviderChoice(name, own == "CPU", notice=_cpu_notice(config, own))
    plugin = trusted_library(name, config.folder, setting=library, libraries=libraries)
    return ProviderChoice(name, name == own, options, plugin)


def inspection_of(config: PackageConfig) -> Inspection | None:
    """What inspection says of the package; None where it cannot say."""
    try:
        return inspect_package(Package(config.name, config.folder))
    except (FimbleError, OSError):
        return None


def better_next_step(error: LoadFailed, config: PackageConfig, choice: ProviderChoice) -> str:
    """What to do where the runtime could not open the package with its own provider.

    This machine and the package together tell more than the runtime's words.
    """
    found = inspection_of(config)
    if found is None or not choice.own:
        return error.next_step
    refusal = provider_refusal(found, this_machine())
    step = error.next_step if refusal is None else refusal.next_step
    if refusal is not None and not choice.is_cpu and not _why_not_cpu(config, found):
        step += " Or run it on the processor, slowly: `fimble engine start --provider cpu`."
    return step


def _require_cpu(config: PackageConfig, own: str, found: Inspection | None) -> None:
    found = found or inspection_of(config)
    why = _why_not_cpu(config, found)
    if why:
        raise LoadFailed(
            f"The package {config.name} cannot run on the CPU: {why}.",
            next_step=f"Use it with its own provider, {own}, or use a package for the CPU.",
        )


def _why_not_cpu(config: PackageConfig, found: Inspection | None) -> str:
    if config.cpu_forbidden:
        return f"its genai_config.json forbids it ({_NO_FALLBACK})"
    foreign = sorted((found.domains if found is not None else frozenset()) - _CPU_DOMAINS)
    if foreign:
        return f"its graph has operators that only its own provider knows ({', '.join(foreign)})"
    return ""


def _cpu_notice(config: PackageConfig, own: str) -> str:
    if own == "CPU":
        return ""
    return (
        f"{config.name} is made for the provider {own} and runs on the CPU, as set: that is many "
        "times slower."
    )
