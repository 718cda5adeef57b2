"""Imports to files, by each language's rules: a tree of files, an import, what it leads to.

In a case, the first line is the file that imports, then its import, then the expected files
(``-`` for none); trees are named by language and shared by their cases.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from fimble_context.syntax import Document, detect, imports
from fimble_context.workspace.resolve import Project, related, resolve
from fimble_context.workspace.resolve.project import strip_json_comments
from fimble_context.workspace.resolve.rust import use_paths

TREES: dict[str, dict[str, str]] = {
    "python": {
        "pyproject.toml": '[tool.setuptools.packages.find]\nwhere = ["server"]\n',
        "app/__init__.py": "",
        "app/main.py": "",
        "app/util.py": "",
        "app/typed.pyi": "",
        "app/sub/__init__.py": "",
        "app/sub/deep.py": "",
        "app/sub/other.py": "",
        "src/lib/__init__.py": "",
        "src/lib/core.py": "",
        "server/served/__init__.py": "",
        "server/served/run.py": "",
        "space/one/thing.py": "",
        "tests/test_main.py": "",
        "tests/helper.py": "",
        "both/module.py": "",
        "both/module/__init__.py": "",
    },
    "typescript": {
        "tsconfig.json": """{ // comments
            "extends": "./tsconfig.base.json",
            "compilerOptions": {"paths": {"@/*": ["./src/*"], "@/special": ["./src/b.ts"],}},
        }""",
        "tsconfig.base.json": '{"compilerOptions": {"baseUrl": "."}}',
        "package.json": '{"name": "root", "workspaces": ["packages/*"],'
        ' "imports": {"#inner/*": "./src/inner/*.ts"}}',
        "src/a.ts": "",
        "src/b.ts": "",
        "src/c.tsx": "",
        "src/plain.js": "",
        "src/types.d.ts": "",
        "src/data.json": "",
        "src/folder/index.ts": "",
        "src/inner/x.ts": "",
        "packages/one/package.json": '{"name": "@org/one", "main": "dist/index.js",'
        ' "exports": {".": {"types": "./dist/index.d.ts", "default": "./dist/index.js"},'
        ' "./features/*": "./src/features/*.ts"}}',
        "packages/one/src/index.ts": "",
        "packages/one/src/features/f.ts": "",
        "packages/two/package.json": '{"name": "two", "main": "./entry.js"}',
        "packages/two/entry.js": "",
        "packages/two/lib/deep.js": "",
        "node_modules/react/index.js": "",
        "solution/tsconfig.json": '{"files": [], "references": [{"path": "./tsconfig.app.json"}]}',
        "solution/tsconfig.app.json": '{"compilerOptions": {"paths": {"~/*": ["app/*"]}}}',
        "solution/app/x.ts": "",
        "solution/app/y.ts": "",
    },
    "go": {
        "go.work": "go 1.22\nuse (\n\t./main\n\t./other\n)\n",
        "main/go.mod": "module example.com/main\n\ngo 1.22\n\nreplace (\n\texample.com/away v1.0.0"
        " => ../elsewhere\n)\n",
        "main/main.go": "package main",
        "main/second.go": "package main",
        "main/main_test.go": "package main",
        "main/pkg/util/a.go": "package util",
        "main/pkg/util/b.go": "package util",
        "main/pkg/util/a_test.go": "package util",
        "other/go.mod": "module example.com/other/v2\n",
        "other/sub/s.go": "package sub",
        "elsewhere/go.mod": "module example.com/away\n",
        "elsewhere/e.go": "package away",
    },
    "java": {
        "core/src/main/java/com/acme/core/Widget.java": "package com.acme.core;",
        "core/src/main/java/com/acme/core/Gadget.java": "package com.acme.core;",
        "core/src/test/java/com/acme/core/WidgetTest.java": "package com.acme.core;",
        "app/src/main/java/com/acme/app/Main.java": "package com.acme.app;",
        "app/src/main/java/com/acme/app/Helper.java": "package com.acme.app;",
        "app/src/main/kotlin/com/acme/app/Extra.kt": "package com.acme.app",
        "odd/code/org/odd/A.java": "package org.odd;",
        "odd/code/org/odd/inner/B.java": "package org.odd.inner;",
    },
    "rust": {
        "Cargo.toml": '[workspace]\nmembers = ["crates/*"]\n',
        "crates/app/Cargo.toml": '[package]\nname = "app"\n[dependencies]\n'
        'renamed = { path = "../../extern/thing", package = "thing" }\n',
        "crates/app/src/main.rs": "",
        "crates/app/src/config.rs": "",
        "crates/app/src/config/parse.rs": "",
        "crates/app/src/net/mod.rs": "",
        "crates/app/src/net/tcp.rs": "",
        "crates/app/src/bin/tool.rs": "",
        "crates/app/tests/it.rs": "",
        "crates/app/tests/common/mod.rs": "",
        "crates/my-lib/Cargo.toml": '[package]\nname = "my-lib"\n',
        "crates/my-lib/src/lib.rs": "",
        "crates/my-lib/src/shape.rs": "",
        "extern/thing/Cargo.toml": '[package]\nname = "thing"\n[lib]\npath = "root.rs"\n',
        "extern/thing/root.rs": "",
    },
    "c": {
        "build/compile_commands.json": '[{"directory": "ROOT/build", "file": "../src/main.c",'
        ' "command": "cc -I../third/inc -isystem ../sys -c ../src/main.c"},'
        ' {"directory": "ROOT", "file": "tool/t.cpp", "arguments": ["c++", "-I", "odd/place"]}]',
        "src/main.c": "",
        "src/local.h": "",
        "src/local.c": "",
        "src/net/tcp.c": "",
        "src/net/tcp.h": "",
        "include/proj/api.h": "",
        "src/api.c": "",
        "third/inc/third.h": "",
        "sys/deep/sys.h": "",
        "odd/place/odd.hpp": "",
        "tool/t.cpp": "",
        "tool/t.hpp": "",
    },
}

CASES = [
    # --- Python
    ("python", "app/main.py", "import app.util", "app/util.py"),
    ("python", "app/main.py", "from app import util, sub", "app/util.py app/sub/__init__.py"),
    ("python", "app/main.py", "from app import VERSION", "app/__init__.py"),
    ("python", "app/main.py", "from . import util, VERSION", "app/util.py app/__init__.py"),
    ("python", "app/main.py", "from .util import f", "app/util.py"),
    ("python", "app/main.py", "from .typed import T", "app/typed.pyi"),
    ("python", "app/sub/deep.py", "from ..util import f", "app/util.py"),
    ("python", "app/sub/deep.py", "from .other import *", "app/sub/other.py"),
    ("python", "app/sub/__init__.py", "from .deep import x", "app/sub/deep.py"),
    ("python", "app/sub/__init__.py", "from . import other", "app/sub/other.py"),
    ("python", "tests/test_main.py", "from lib.core import f", "src/lib/core.py"),
    ("python", "tests/test_main.py", "import served.run as r", "server/served/run.py"),
    ("python", "tests/test_main.py", "import helper", "tests/helper.py"),
    ("python", "tests/test_main.py", "from space.one import thing", "space/one/thing.py"),
    ("python", "tests/test_main.py", "from both import module", "both/module/__init__.py"),
    ("python", "app/main.py", "import os.path", "-"),
    ("python", "app/main.py", "from ........ import x", "-"),
    # --- TypeScript and JavaScript
    ("typescript", "src/a.ts", 'import {x} from "./b";', "src/b.ts"),
    ("typescript", "src/a.ts", 'import {x} from "./b.js";', "src/b.ts"),
    ("typescript", "src/a.ts", 'import C from "./c";', "src/c.tsx"),
    ("typescript", "src/a.ts", 'import type {T} from "./types";', "src/types.d.ts"),
    ("typescript", "src/a.ts", 'import d from "./data.json";', "src/data.json"),
    ("typescript", "src/a.ts", 'export * from "./folder";', "src/folder/index.ts"),
    ("typescript", "src/folder/index.ts", 'import {x} from "..";', "-"),
    ("typescript", "src/a.ts", 'import {x} from "@/folder";', "src/folder/index.ts"),
    ("typescript", "src/a.ts", 'import {x} from "@/special";', "src/b.ts"),
    ("typescript", "src/a.ts", 'import {x} from "src/plain";', "src/plain.js"),
    ("typescript", "src/a.ts", 'import {x} from "#inner/x";', "src/inner/x.ts"),
    ("typescript", "src/a.ts", 'import {x} from "@org/one";', "packages/one/src/index.ts"),
    (
        "typescript",
        "src/a.ts",
        'import {x} from "@org/one/features/f";',
        "packages/one/src/features/f.ts",
    ),
    ("typescript", "src/plain.js", 'const two = require("two");', "packages/two/entry.js"),
    ("typescript", "src/a.ts", 'import x from "two/lib/deep";', "packages/two/lib/deep.js"),
    ("typescript", "src/a.ts", 'import React from "react";', "-"),
    ("typescript", "solution/app/x.ts", 'import {y} from "~/y";', "solution/app/y.ts"),
    # --- Go
    (
        "go",
        "main/main.go",
        'import "example.com/main/pkg/util"',
        "main/pkg/util/a.go main/pkg/util/b.go",
    ),
    ("go", "main/main.go", 'import s "example.com/other/v2/sub"', "other/sub/s.go"),
    ("go", "main/main.go", 'import "example.com/away"', "elsewhere/e.go"),
    ("go", "other/sub/s.go", 'import "example.com/main"', "main/main.go main/second.go"),
    ("go", "main/main.go", 'import "fmt"', "-"),
    ("go", "main/main.go", 'import "example.com/mainly/pkg"', "-"),
    # --- Java, Kotlin
    (
        "java",
        "app/src/main/java/com/acme/app/Main.java",
        "import com.acme.app.Helper;",
        "app/src/main/java/com/acme/app/Helper.java",
    ),
    (
        "java",
        "app/src/main/java/com/acme/app/Main.java",
        "import com.acme.core.Widget;",
        "core/src/main/java/com/acme/core/Widget.java",
    ),
    (
        "java",
        "app/src/main/java/com/acme/app/Main.java",
        "import com.acme.core.*;",
        "core/src/main/java/com/acme/core/Gadget.java core/src/main/java/com/acme/core/Widget.java",
    ),
    (
        "java",
        "app/src/main/java/com/acme/app/Main.java",
        "import com.acme.core.Widget.Builder;",
        "core/src/main/java/com/acme/core/Widget.java",
    ),
    (
        "java",
        "core/src/test/java/com/acme/core/WidgetTest.java",
        "import static com.acme.core.Gadget.make;",
        "core/src/main/java/com/acme/core/Gadget.java",
    ),
    ("java", "odd/code/org/odd/A.java", "import org.odd.inner.B;", "odd/code/org/odd/inner/B.java"),
    ("java", "odd/code/org/odd/A.java", "import java.util.List;", "-"),
    (
        "java",
        "app/src/main/kotlin/com/acme/app/Extra.kt",
        "import com.acme.app.Helper",
        "app/src/main/java/com/acme/app/Helper.java",
    ),
    # --- Rust
    ("rust", "crates/app/src/main.rs", "mod config;", "crates/app/src/config.rs"),
    ("rust", "crates/app/src/main.rs", "mod net;", "crates/app/src/net/mod.rs"),
    ("rust", "crates/app/src/config.rs", "mod parse;", "crates/app/src/config/parse.rs"),
    ("rust", "crates/app/src/net/mod.rs", "mod tcp;", "crates/app/src/net/tcp.rs"),
    (
        "rust",
        "crates/app/src/net/tcp.rs",
        "use crate::config::{parse::Parser, Config};",
        "crates/app/src/config/parse.rs crates/app/src/config.rs",
    ),
    ("rust", "crates/app/src/net/tcp.rs", "use super::Socket;", "crates/app/src/net/mod.rs"),
    (
        "rust",
        "crates/app/src/net/tcp.rs",
        "use super::super::config::Config;",
        "crates/app/src/config.rs",
    ),
    ("rust", "crates/app/src/net/mod.rs", "use self::tcp::*;", "crates/app/src/net/tcp.rs"),
    ("rust", "crates/app/src/main.rs", "use config::parse;", "crates/app/src/config/parse.rs"),
    ("rust", "crates/app/src/main.rs", "use my_lib::shape::Sq;", "crates/my-lib/src/shape.rs"),
    ("rust", "crates/app/src/main.rs", "extern crate my_lib;", "crates/my-lib/src/lib.rs"),
    ("rust", "crates/app/src/main.rs", "use renamed::Thing;", "extern/thing/root.rs"),
    ("rust", "crates/app/tests/it.rs", "mod common;", "crates/app/tests/common/mod.rs"),
    ("rust", "crates/app/src/main.rs", "use std::collections::HashMap;", "-"),
    # --- C, C++
    ("c", "src/main.c", '#include "local.h"', "src/local.h"),
    ("c", "src/main.c", '#include "net/tcp.h"', "src/net/tcp.h"),
    ("c", "src/net/tcp.c", '#include "../local.h"', "src/local.h"),
    ("c", "src/net/tcp.c", "#include <proj/api.h>", "include/proj/api.h"),
    ("c", "src/main.c", "#include <third.h>", "third/inc/third.h"),
    ("c", "src/main.c", "#include <deep/sys.h>", "sys/deep/sys.h"),
    ("c", "tool/t.cpp", "#include <odd.hpp>", "odd/place/odd.hpp"),
    ("c", "tool/t.hpp", "#include <third.h>", "third/inc/third.h"),
    ("c", "src/main.c", "#include <stdio.h>", "-"),
]


def tree(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("ROOT", root.as_posix()), encoding="utf-8", newline="")
    return root


def resolved(root: Path, file: str, line: str) -> str:
    path = root / file
    language = detect(None, file, line)
    assert language is not None
    project = Project([root])
    found = dict.fromkeys(
        target
        for import_ in imports(Document(line, path=file))
        for target in resolve(import_, language.id, path, project)
    )
    return " ".join(target.relative_to(root).as_posix() for target in found) or "-"


@pytest.mark.parametrize(("name", "file", "line", "expected"), CASES)
def test_an_import_leads_to(tmp_path: Path, name: str, file: str, line: str, expected: str) -> None:
    assert resolved(tree(tmp_path, TREES[name]), file, line) == expected


@pytest.mark.parametrize(
    ("name", "file", "expected"),
    [
        ("python", "app/main.py", "app/__init__.py"),
        ("go", "main/main.go", "main/second.go"),
        ("go", "main/main_test.go", "main/main.go main/second.go"),
        (
            "java",
            "core/src/main/java/com/acme/core/Widget.java",
            "core/src/main/java/com/acme/core/Gadget.java",
        ),
        ("rust", "crates/app/src/net/tcp.rs", "crates/app/src/net/mod.rs"),
        ("rust", "crates/app/src/net/mod.rs", "crates/app/src/main.rs"),
        ("c", "src/local.c", "src/local.h"),
        ("c", "src/local.h", "src/local.c"),
        ("c", "include/proj/api.h", "src/api.c"),
        ("c", "tool/t.cpp", "tool/t.hpp"),
        ("typescript", "src/a.ts", ""),
    ],
)
def test_files_that_belong_together(tmp_path: Path, name: str, file: str, expected: str) -> None:
    root = tree(tmp_path, TREES[name])
    language = detect(None, file)
    assert language is not None
    found = related(language.id, root / file, Project([root]))
    assert " ".join(path.relative_to(root).as_posix() for path in found) == expected


def test_the_other_folders_of_a_workspace_are_searched(tmp_path: Path) -> None:
    tree(tmp_path, {"one/a.py": "", "two/src/shared/__init__.py": "", "two/src/shared/b.py": ""})
    project = Project([tmp_path / "one", tmp_path / "two"])
    (import_,) = imports(Document("from shared import b", path="a.py"))
    assert resolve(import_, "python", tmp_path / "one" / "a.py", project) == [
        tmp_path / "two" / "src" / "shared" / "b.py"
    ]


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("a.c", '#include "../outside/x.h"'),
        ("a.ts", 'import "../outside/x";'),
        ("a.ts", 'import "~/x";'),
        ("a.py", "from ..outside import x"),
    ],
)
def test_no_import_leads_out_of_the_workspace(tmp_path: Path, file: str, line: str) -> None:
    paths = '{"compilerOptions": {"paths": {"~/*": ["../outside/*"]}}}'
    tree(tmp_path, {"w/tsconfig.json": paths, f"w/{file}": ""})
    tree(tmp_path, dict.fromkeys(("outside/x.h", "outside/x.ts", "outside/x.py"), ""))
    assert resolved(tmp_path / "w", file, line) == "-"


def test_settings_are_read_again_when_they_change(tmp_path: Path) -> None:
    tree(tmp_path, {"tsconfig.json": "{}", "a.ts": "", "x/b.ts": "", "y/b.ts": ""})
    project = Project([tmp_path])
    (import_,) = imports(Document('import {b} from "~/b";', path="a.ts"))
    found = []
    for folder in ("x", "other/../y"):
        text = f'{{"compilerOptions": {{"paths": {{"~/*": ["{folder}/*"]}}}}}}'
        tree(tmp_path, {"tsconfig.json": text})
        found += resolve(import_, "typescript", tmp_path / "a.ts", project)
    assert found == [tmp_path / "x" / "b.ts", tmp_path / "y" / "b.ts"]


BROKEN = [
    "",
    "{",
    "[]",
    "null",
    '{"compilerOptions": 1, "workspaces": 3, "exports": 0}',
    "\0\ud800",
]


@pytest.mark.parametrize("name", sorted(TREES.keys() - {"go"}))
@pytest.mark.parametrize("content", range(len(BROKEN)))
def test_broken_settings_are_no_settings(tmp_path: Path, name: str, content: int) -> None:
    root = tree(tmp_path, TREES[name])
    for file in root.rglob("*"):
        if file.suffix in (".json", ".toml", ".mod", ".work"):
            file.write_bytes(BROKEN[content].encode("utf-8", "surrogatepass"))
    answers = [resolved(root, file, line) for case, file, line, _ in CASES if case == name]
    # Relative imports need no settings.
    assert [answer for answer in answers if answer != "-"]


@pytest.mark.parametrize(
    "source",
    ["", ".", "..", "/", "//", "\0", "a" * 5000, "../" * 200, "::", "{", "*", "con", "a:b"],
)
@pytest.mark.parametrize(
    "language", ["python", "tsx", "go", "java", "rust", "c", "cpp", "ruby", "markdown"]
)
def test_odd_sources_lead_nowhere_or_to_files(tmp_path: Path, language: str, source: str) -> None:
    tree(tmp_path, {"a/x": "", "a/index.ts": "", "a/__init__.py": ""})
    (import_,) = imports(Document("import name", path="a.py"))
    odd = type(import_)(source, 0, 0, (), "", False)
    found = resolve(odd, language, tmp_path / "a" / "x", Project([tmp_path]))
    assert all(path.is_file() for path in found)


def test_paths_of_a_use_tree() -> None:
    assert use_paths("a::{b::{C, D as E}, e, self, f::*}") == [
        ["a", "b", "C"],
        ["a", "b", "D"],
        ["a", "e"],
        ["a"],
        ["a", "f"],
    ]
    assert use_paths("crate::x::r#type as t") == [["crate", "x", "type"]]


def test_comments_in_json_but_not_in_its_strings() -> None:
    text = '{"a": "//x", /* c */ "b": [1,], // d\n "c": "y,}",}'
    assert json.loads(strip_json_comments(text)) == {"a": "//x", "b": [1], "c": "y,}"}
