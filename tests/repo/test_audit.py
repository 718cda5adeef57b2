"""A hole that can be closed fails; an audit that nobody answers is skipped by its name."""

from __future__ import annotations

import json

import pytest
from release.audit import Hole, holes_by_npm, holes_by_pip_audit, verdict

KNOWN = [Hole("known 1", "CVE-1", "2")]


def test_what_pip_audit_reports_is_read() -> None:
    report = {
        "dependencies": [
            {"name": "fine", "version": "1", "vulns": []},
            {"name": "holed", "version": "2", "vulns": [{"id": "CVE-2", "fix_versions": ["3"]}]},
            {"name": "open", "version": "4", "vulns": [{"id": "CVE-3", "fix_versions": []}]},
            {"name": "unknown", "skip_reason": "not found"},
        ]
    }
    assert holes_by_pip_audit(json.dumps(report)) == [
        Hole("holed 2", "CVE-2", "3"),
        Hole("open 4", "CVE-3", ""),
    ]


def test_what_npm_reports_is_read() -> None:
    report = {
        "vulnerabilities": {
            "open": {"severity": "low", "fixAvailable": False},
            "holed": {"severity": "high", "fixAvailable": {"name": "holed", "version": "2"}},
        }
    }
    assert holes_by_npm(json.dumps(report)) == [
        Hole("holed", "high", "npm audit fix"),
        Hole("open", "low", ""),
    ]


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"error": {"code": "ENOAUDIT"}}'])
def test_what_is_no_report_is_none(text: str) -> None:
    assert holes_by_pip_audit(text) is None
    assert holes_by_npm(text) is None


def test_a_hole_that_can_be_closed_fails() -> None:
    lines, well = verdict("audit", KNOWN, [Hole("holed 2", "CVE-2", "3")])
    assert not well
    assert lines[0] == "audit: holed 2 has CVE-2; closed by: 3"


def test_a_hole_without_a_remedy_is_told() -> None:
    lines, well = verdict("audit", KNOWN, [Hole("open 4", "CVE-3", "")])
    assert well
    assert "open 4 has CVE-3; closed by: nothing yet" in lines[0]


def test_no_hole_is_well() -> None:
    assert verdict("audit", KNOWN, []) == (["audit: no known holes"], True)


@pytest.mark.parametrize(("known", "found"), [(None, None), ([], []), (KNOWN, None)])
def test_advisories_that_cannot_be_had_are_a_skip_and_no_pass(
    known: list[Hole] | None, found: list[Hole] | None
) -> None:
    """Not even when the answer is that nothing is wrong, for what is known to be."""
    assert verdict("audit", known, found) == (
        ["audit: skipped, since no advisories can be had here"],
        True,
    )
