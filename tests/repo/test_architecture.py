"""The invariants of ARCHITECTURE.md that can be read off the imports."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Iterator
from importlib import metadata
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {
    "fimble": ROOT / "server" / "fimble",
    "fimble_context": ROOT / "context" / "fimble_context",
}

#: Layer → the layers of ours that it may import. What is not named here is forbidden.
ALLOWED = {
    "fimble.controls": set(),
    "fimble.errors": set(),
    "fimble.progress": set(),
    "fimble.template_bounds": set(),
    "fimble.system": {"fimble.errors"},
    "fimble.models": {"fimble.errors", "fimble.progress", "fimble.system"},
    "fimble.engine": {
        "fimble.controls",
        "fimble.errors",
        "fimble.progress",
        "fimble.system",
        "fimble.template_bounds",
        "fimble.models",
    },
    "fimble.assist": {
        "fimble.controls",
        "fimble.errors",
        "fimble.progress",
        "fimble.system",
        "fimble.template_bounds",
        "fimble.models",
        "fimble.engine",
        "fimble_context",
    },
    "fimble.lsp": {
        "fimble.controls",
        "fimble.errors",
        "fimble.progress",
        "fimble.system",
        "fimble.models",
        "fimble.engine",
        "fimble.assist",
        "fimble_context",
    },
    "fimble.doctor": {
        "fimble.errors",
        "fimble.progress",
        "fimble.system",
        "fimble.models",
        "fimble.engine",
    },
    "fimble.bench": {
        "fimble.errors",
        "fimble.system",
        "fimble.models",
        "fimble.engine",
        "fimble.assist",
        "fimble.lsp",
        "fimble_context",
    },
    "fimble.cli": {
        "fimble.controls",
        "fimble.errors",
        "fimble.bench",
        "fimble.doctor",
        "fimble.progress",
        "fimble.system",
        "fimble.models",
        "fimble.engine",
        "fimble.assist",
        "fimble.lsp",
        "fimble_context",
    },
    "fimble.__main__": {"fimble.cli"},
    "fimble_context": set(),
}

#: The folders of fimble_context, the uppermost first: each may import those after it.
FOLDERS = ("assembly", "candidates", "index", "workspace", "syntax")

#: Third-party module → the only layer that may import it.
CONFINED = {
    "lsprotocol": "fimble.lsp",
    "pygls": "fimble.lsp",
    "onnxruntime_genai": "fimble.engine",
    "llama_cpp": "fimble.bench",
    "starlette": "fimble.engine",
    "uvicorn": "fimble.engine",
    "tokenizers": ("fimble.engine", "fimble.models"),
    "gguf": "fimble.models",
    "onnx": "fimble.models",
    "huggingface_hub": "fimble.models",
    "matplotlib": "fimble.cli",
    "tree_sitter": "fimble_context",
    "click": "fimble.cli",
    "prompt_toolkit": "fimble.cli",
    "rich": "fimble.cli",
}


def modules() -> Iterator[tuple[str, Path]]:
    """(dotted name, file) of every module of ours."""
    for package, folder in SOURCES.items():
        for file in sorted(folder.rglob("*.py")):
            parts = file.relative_to(folder).with_suffix("").parts
            yield ".".join((package, *(part for part in parts if part != "__init__"))), file


def layer_of(module: str) -> str:
    """``fimble.lsp.server`` → ``fimble.lsp``; every part of fimble_context is one layer."""
    parts = module.split(".")
    return parts[0] if parts[0] == "fimble_context" else ".".join(parts[:2])


def imports_of(file: Path) -> Iterator[str]:
    """Every module that ``file`` imports, also inside functions and for types only."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import; write the whole name"
            assert node.module is not None
            for alias in node.names:
                is_layer = f"{node.module}.{alias.name}" in ALLOWED
                yield f"{node.module}.{alias.name}" if is_layer else node.module
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (str(a.value) for a in node.args if isinstance(a, ast.Constant))


def test_imports_go_down_only() -> None:
    broken = []
    for module, file in modules():
        layer = layer_of(module)
        for imported in imports_of(file):
            if imported.split(".")[0] not in SOURCES or imported in ("fimble", layer):
                continue
            if layer_of(imported) not in {layer, *ALLOWED.get(layer, set())}:
                broken.append(f"{module} imports {imported}")
    assert not broken


def test_every_layer_is_named_in_the_rules() -> None:
    assert {layer_of(module) for module, _ in modules()} <= {"fimble", *ALLOWED}


def test_folders_of_the_context_library_import_down_only() -> None:
    broken = []
    for module, file in modules():
        if layer_of(module) != "fimble_context":
            continue
        _, own, *_ = (*module.split("."), "")
        below = FOLDERS[FOLDERS.index(own) :] if own else ()
        for imported in imports_of(file):
            package, folder, *_ = (*imported.split("."), "")
            if package == "fimble_context" and folder not in below:
                broken.append(f"{module} imports {imported}")
    assert not broken


def test_modules_of_the_context_library_import_in_no_circle() -> None:
    files = {module: file for module, file in modules() if layer_of(module) == "fimble_context"}
    needs = {module: set(imported_modules(file, files)) for module, file in files.items()}
    # What needs nothing more, and what nothing needs any more, is in no circle.
    while ends := {
        module
        for module, needed in needs.items()
        if not needed & needs.keys() or not any(module in others for others in needs.values())
    }:
        needs = {module: needs[module] for module in needs.keys() - ends}
    assert not sorted(needs)


def imported_modules(file: Path, known: Collection[str]) -> Iterator[str]:
    """The modules of ``known`` that ``file`` imports, whole or a name of them."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in known else node.module for name in names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_the_context_library_is_used_through_its_folders_only() -> None:
    users = [file for module, file in modules() if layer_of(module) != "fimble_context"]
    users += [file for name in ("benchmarks", "examples") for file in (ROOT / name).rglob("*.py")]
    public = {f"fimble_context.{folder}" for folder in FOLDERS}
    inner = [
        f"{file.relative_to(ROOT).as_posix()} imports {imported}"
        for file in users
        for imported in imports_of(file)
        if imported.split(".")[0] == "fimble_context" and imported not in public
    ]
    assert not inner


@pytest.mark.parametrize("name", sorted(CONFINED))
def test_a_library_stays_in_its_layer(name: str) -> None:
    allowed = CONFINED[name]
    users = {
        layer_of(module)
        for module, file in modules()
        if any(imported.split(".")[0] == name for imported in imports_of(file))
    }
    assert users <= ({allowed} if isinstance(allowed, str) else set(allowed))


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_third_party_import_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {canonical(re.split(r"[\s;<>=\[!~]", line)[0]) for line in project["dependencies"]}
    by_module = metadata.packages_distributions()
    undeclared = []
    for module, file in modules():
        for imported in {name.split(".")[0] for name in imports_of(file)}:
            if imported in SOURCES or imported in sys.stdlib_module_names:
                continue
            if imported in ("onnxruntime_genai", "llama_cpp", "matplotlib", "keyring"):
                continue  # the extras name them, on purpose never the base install
            owners = {canonical(d) for d in by_module.get(imported, [imported])}
            if not owners & declared:
                undeclared.append(f"{module} imports {imported}")
    assert not undeclared


def test_every_declared_dependency_is_used() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {canonical(re.split(r"[\s;<>=\[!~]", line)[0]) for line in project["dependencies"]}
    imported = {name.split(".")[0] for _, file in modules() for name in imports_of(file)}
    by_module = metadata.packages_distributions()
    used = {canonical(d) for module in imported for d in by_module.get(module, [module])}
    # pip is run as a command; grammars are imported by the names in languages.py.
    grammars = {name for name in declared if name.startswith("tree-sitter-")}
    assert declared <= used | grammars | {"pip", "tomli"}


def test_base_install_names_no_runtime_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert not [line for line in project["dependencies"] if "onnxruntime" in line]
    assert {"cpu", "directml", "winml", "cuda", "test", "e2e"} <= set(
        project["optional-dependencies"]
    )


@pytest.mark.parametrize("platform_name", ["sys.platform", "os.name", "platform.system"])
def test_only_one_package_branches_on_the_platform(platform_name: str) -> None:
    users = {
        module
        for module, file in modules()
        if platform_name in file.read_text(encoding="utf-8")
        and not f"{module}.".startswith("fimble.system.")
    }
    assert not users


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        module
        for module, file in modules()
        if not ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    ]
    assert not silent
