"""What a look at this machine comes to: lines that are fine, doubtful or wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Check", "Report", "Status"]

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Check:
    """One line. ``name`` is for scripts and does not change; ``next_step`` is in the
    imperative, and empty only where all is well.
    """

    name: str
    status: Status
    detail: str
    next_step: str = ""

    def __post_init__(self) -> None:
        if self.status != "ok" and not self.next_step:
            raise ValueError(f"{self.name}: what is wrong needs a next step")


@dataclass(frozen=True, slots=True)
class Report:
    """All lines, in the order in which to read them. ``version`` is fimble's."""

    checks: tuple[Check, ...]
    version: str

    @property
    def ok(self) -> bool:
        """Whether nothing failed; doubts are no failures."""
        return not any(check.status == "fail" for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """The form of ``fimble doctor --json``."""
        return {
            "ok": self.ok,
            "version": self.version,
            "checks": [
                {
                    "name": check.name,
                    "status": check.status,
                    "detail": check.detail,
                    "next_step": check.next_step,
                }
                for check in self.checks
            ],
            "counts": {status: _count(self.checks, status) for status in ("ok", "warn", "fail")},
        }


def _count(checks: Sequence[Check], status: str) -> int:
    return sum(check.status == status for check in checks)
