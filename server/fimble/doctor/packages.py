"""The installed packages: whether their files are whole, and whether they can run here.

Asks ``fimble.models`` for both; adds which package a request without a name would get, since
only that one's faults are failures. Sums of packages are not known, sizes are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fimble.doctor.checks import Check, Status
from fimble.doctor.devices import Severity
from fimble.engine.options import EngineOptions
from fimble.errors import FimbleError
from fimble.models.catalogue import DEFAULT_MODEL
from fimble.models.device_memory import DeviceMemory
from fimble.models.inspection import Inspection, inspect_package
from fimble.models.providers import Machine
from fimble.models.report import ModelReport, gib, make_report
from fimble.models.store import Package, Store

__all__ = ["PackageFacts", "StoreFacts", "look_at_packages", "package_checks", "severity_of"]


@dataclass(frozen=True, slots=True)
class PackageFacts:
    """``inspection`` is None where there is an ``error``. ``chosen``: it is what runs where
    nobody names a model.
    """

    name: str
    chosen: bool
    inspection: Inspection | None = None
    error: FimbleError | None = None


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """``choice`` is why no package is chosen; ``unfinished`` are names of broken-off pulls."""

    packages: tuple[PackageFacts, ...] = ()
    choice: FimbleError | None = None
    unfinished: tuple[str, ...] = ()


def look_at_packages(store: Store) -> StoreFacts:
    """Inspects every package of the store."""
    try:
        packages = store.packages()
    except FimbleError as error:
        return StoreFacts(choice=error)
    chosen, choice = None, None
    try:
        chosen = store.default()
    except FimbleError as error:
        choice = error
    return StoreFacts(
        tuple(_inspect(package, chosen) for package in packages), choice, _unfinished(store)
    )


def _inspect(package: Package, chosen: Package | None) -> PackageFacts:
    is_chosen = chosen is not None and chosen.name == package.name
    try:
        return PackageFacts(package.name, is_chosen, inspect_package(package))
    except FimbleError as error:
        return PackageFacts(package.name, is_chosen, error=error)


def _unfinished(store: Store) -> tuple[str, ...]:
    folder = store.partial(DEFAULT_MODEL).parent
    try:
        return tuple(sorted(p.name for p in folder.iterdir() if p.name[0] != "." and p.is_dir()))
    except OSError:
        return ()


def severity_of(packages: Sequence[PackageFacts]) -> Severity:
    """How bad it is that a provider is missing, by the packages that are made for it."""
    chosen: set[str] = set()
    others: set[str] = set()
    for package in packages:
        if package.inspection is not None:
            provider = package.inspection.provider.canonical
            (chosen if package.chosen else others).add(provider)

    def severity(provider: str) -> Status:
        if provider in chosen:
            return "fail"
        return "warn" if provider in others else "ok"

    return severity


def package_checks(
    store: StoreFacts, machine: Machine, memory_of: Callable[[str], DeviceMemory]
) -> list[Check]:
    """A line for each package; ``memory_of`` gives the memory that a provider works in."""
    checks = []
    if not store.packages:
        step = f"Run `fimble model pull {DEFAULT_MODEL}`."
        checks.append(Check("models", "warn", "no model is installed", step))
    elif store.choice is not None:
        checks.append(_from_error("models", "warn", store.choice))
    checks += [_package_check(package, machine, memory_of) for package in store.packages]
    for name in store.unfinished:
        step = f"Run `fimble model pull {name}` again; it goes on where it stopped."
        checks.append(Check(f"unfinished {name}", "warn", "a pull or import broke off", step))
    return checks


def _package_check(
    package: PackageFacts, machine: Machine, memory_of: Callable[[str], DeviceMemory]
) -> Check:
    name = f"model {package.name}"
    bad: Status = "fail" if package.chosen else "warn"
    if package.error is not None:
        return _from_error(name, bad, package.error)
    found = package.inspection
    assert found is not None
    options = EngineOptions()
    report = make_report(
        found,
        machine,
        memory_of(found.provider.name),
        slots=options.slots,
        setting=options.context_tokens,
    )
    if report.problem is not None:
        step = report.next_step or f"Run `fimble model inspect {package.name}`."
        return Check(name, bad, report.problem, step)
    return Check(name, "ok", _described(report, package.chosen))


def _described(report: ModelReport, chosen: bool) -> str:
    found = report.inspection
    parts = [
        *(["the default"] if chosen else []),
        found.quantisation or "weights of unknown kind",
        f"{len(found.files)} files of the right sizes, {gib(sum(s for _, s in found.files))}",
        f"provider {found.provider.canonical}",
        f"runs with {report.plan.max_length:,} of {found.window.tokens:,} tokens",
    ]
    return ", ".join(parts)


def _from_error(name: str, status: Status, error: FimbleError) -> Check:
    return Check(name, status, error.message, error.next_step or "Run `fimble model list`.")
