"""Software bills of materials, in CycloneDX's JSON, with the licence of each part."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from release.node import NPM, run_node
from release.refusal import ReleaseRefused
from release.resolve import Package
from release.tree import Commit

__all__ = ["extension_sbom", "server_sbom"]

#: A licence given as its whole text is no name of one.
_LONGEST_NAME = 100


def server_sbom(
    packages: Sequence[Package], about: dict[str, Any], sha256: str, commit: Commit
) -> str:
    """Of the wheel with these metadata and that sum. Each part says with which extra it comes,
    and on which systems.
    """
    version = str(about["version"])
    wheel = Component(
        name="fimble",
        version=version,
        type=ComponentType.APPLICATION,
        bom_ref=f"fimble=={version}",
        purl=PackageURL("pypi", None, "fimble", version),
        licenses=[LicenseFactory().make_from_string("Apache-2.0")],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=sha256)],
    )
    parts = [(package, _component(package)) for package in packages]
    bom = Bom(
        components=[part for _, part in parts],
        serial_number=_serial(f"fimble-{version}", commit),
        metadata=BomMetaData(component=wheel, timestamp=_time(commit)),
    )
    direct = Package(about).needs
    bom.register_dependency(wheel, [part for package, part in parts if package.name in direct])
    for package, part in parts:
        needs = package.needs
        bom.register_dependency(part, [other for each, other in parts if each.name in needs])
    text = JsonV1Dot6(bom).output_as_string(indent=2) + "\n"
    return _valid(text, SchemaVersion.V1_6)


def _component(package: Package) -> Component:
    extras = sorted(package.extras - {""})
    told = [("fimble:extra", each) for each in extras]
    told += [("fimble:system", each) for each in sorted(package.systems)]
    return Component(
        name=package.name,
        version=package.version,
        bom_ref=f"{package.name}=={package.version}",
        purl=PackageURL("pypi", None, package.name, package.version),
        scope=ComponentScope.OPTIONAL if extras else ComponentScope.REQUIRED,
        licenses=_licences(package.about),
        properties=[Property(name=name, value=value) for name, value in told],
    )


def _licences(about: dict[str, Any]) -> Iterable[License]:
    factory = LicenseFactory()
    if about.get("license_expression"):
        return [factory.make_with_expression(about["license_expression"])]
    named = str(about.get("license") or "").strip()
    if named and "\n" not in named and len(named) <= _LONGEST_NAME:
        return [factory.make_from_string(named)]
    classes = [each for each in about.get("classifier", ()) if each.startswith("License ::")]
    if not classes:
        raise ReleaseRefused(f"{about['name']} {about['version']} names no licence: look at it.")
    return [factory.make_from_string(each.rpartition(" :: ")[2]) for each in classes]


def extension_sbom(client: Path, version: str, wheel_sha256: str, commit: Commit) -> str:
    """Of the extension in the folder ``client``: what is bundled, and the wheel in it."""
    kinds = ("--sbom-format", "cyclonedx", "--omit", "dev", "--package-lock-only")
    bom = json.loads(run_node(NPM, "sbom", *kinds, cwd=client))
    bom["serialNumber"] = f"urn:uuid:{_serial(f'fimble-{version}.vsix', commit)}"
    bom["metadata"]["timestamp"] = _time(commit).isoformat()
    bom["metadata"]["component"]["name"] = "fimble"
    wheel = {
        "bom-ref": f"fimble=={version}",
        "type": "application",
        "name": "fimble",
        "version": version,
        "purl": f"pkg:pypi/fimble@{version}",
        "hashes": [{"alg": "SHA-256", "content": wheel_sha256}],
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }
    bom["components"].append(wheel)
    return _valid(json.dumps(bom, indent=2, ensure_ascii=False) + "\n", SchemaVersion.V1_5)


def _serial(name: str, commit: Commit) -> uuid.UUID:
    """The same for the same commit."""
    return uuid.uuid5(uuid.UUID(bytes=bytes(16)), f"{name} {commit.name}")


def _time(commit: Commit) -> datetime:
    return datetime.fromtimestamp(commit.time, timezone.utc)


def _valid(text: str, version: SchemaVersion) -> str:
    error = JsonStrictValidator(version).validate_str(text)
    if error is not None:
        raise ReleaseRefused(f"The bill of materials is not valid CycloneDX: {error}")
    return text
