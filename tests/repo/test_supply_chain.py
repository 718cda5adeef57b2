"""What development depends on: pinned by version and hash, from anywhere, under known licences.

``requirements-test.txt`` is made by the command in its first lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import tomli
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements-test.txt").read_text(encoding="utf-8")
#: One requirement with its hashes, which go on over several lines.
LOCKED = [
    each.strip()
    for each in re.split(r"(?<!\\)\n", re.sub(r"^#.*\n", "", LOCK, flags=re.MULTILINE))
    if each.strip()
]

#: As they are spelled in licence expressions, classifiers and older metadata.
ALLOWED = re.compile(
    r"\b(MIT|BSD|Apache|Apache-2\.0|ISC|MPL|MPL-2\.0|PSF|PSF-2\.0|Python-2\.0|0BSD|Zlib|HPND"
    r"|Unlicense|CC0-1\.0|Mozilla Public License|Python Software Foundation|PIL)\b",
    re.IGNORECASE,
)
REFUSED = re.compile(r"\b(AGPL|Affero|SSPL|BUSL|Commons Clause|proprietary)\b", re.IGNORECASE)


def requirement(locked: str) -> Requirement:
    return Requirement(locked.split(" \\\n")[0])


def direct() -> Iterator[Requirement]:
    project = tomli.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    listed = project["dependencies"] + [e for name in ("test", "cpu", "plot") for e in extras[name]]
    for each in map(Requirement, listed):
        if each.name != "fimble":
            yield each


def test_everything_is_pinned_by_version_and_hash() -> None:
    for locked in LOCKED:
        assert re.fullmatch(r"==[\w.+!]+", str(requirement(locked).specifier)), locked
        hashes = re.findall(r"--hash=(\S+)", locked)
        assert hashes, locked
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for each in hashes), locked


def test_no_place_to_get_it_from_is_named() -> None:
    assert not re.search(r"://|--(extra-)?index-url|--find-links|--trusted-host|\bfile:", LOCK)


def test_every_dependency_is_in_it_and_as_new_as_it_has_to_be() -> None:
    pinned: dict[str, list[str]] = {}
    for locked in LOCKED:
        found = requirement(locked)
        version = str(found.specifier).removeprefix("==")
        pinned.setdefault(canonicalize_name(found.name), []).append(version)
    for each in direct():
        versions = pinned.get(canonicalize_name(each.name))
        assert versions, f"{each.name} is not in requirements-test.txt: make it again"
        assert all(each.specifier.contains(v, prereleases=True) for v in versions), each


def test_licences_are_ones_that_we_can_live_with() -> None:
    """Of what is installed here: the rest is for other systems and Pythons."""
    seen = 0
    for name in sorted({canonicalize_name(requirement(locked).name) for locked in LOCKED}):
        try:
            about = metadata(name)
        except PackageNotFoundError:
            continue
        seen += 1
        classes = [c for c in about.get_all("Classifier") or () if c.startswith("License ::")]
        told = [*(about.get_all("License-Expression") or ()), *(about.get_all("License") or ())]
        licence = " ".join([*classes, *(each[:200] for each in told)])
        assert ALLOWED.search(licence), f"{name}: {licence!r}"
        assert not REFUSED.search(licence), f"{name}: {licence!r}"
    assert seen > len(list(direct())) / 2
