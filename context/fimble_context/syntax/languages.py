"""The languages we know: one table row each, and how a document's language is found.

A row names the grammar and the query folders; ``grammar`` and ``query`` load them on first
use. A grammar that cannot be loaded, or a query that does not fit it, makes the language
plain text in that respect and is logged once: nothing here raises for it.
"""

from __future__ import annotations

import importlib
import logging
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath
from typing import Literal, TypeAlias, get_args

from tree_sitter import Language as Grammar
from tree_sitter import Query, QueryError

__all__ = [
    "LANGUAGES",
    "Language",
    "QueryName",
    "detect",
    "grammar",
    "language_named",
    "prepare",
    "query",
    "query_source",
]

QueryName: TypeAlias = Literal[
    "definitions", "references", "imports", "scopes", "strings", "blocks"
]

_QUERIES = Path(__file__).parents[1] / "queries"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Language:
    """One table row. ``id`` is our name and that of its first query folder.

    ``lsp_ids`` are the language ids of editors; ``queries`` are folders whose files are
    joined, general ones first. ``elision`` stands for a body left out of a signature,
    ``comment`` begins a line comment. ``deepest`` is how many levels of indentation the
    grammar's scanner survives, where it is known to crash the process beyond some.
    """

    id: str
    name: str
    module: str
    extensions: tuple[str, ...]
    lsp_ids: tuple[str, ...]
    files: tuple[str, ...] = ()
    shebangs: tuple[str, ...] = ()
    function: str = "language"
    queries: tuple[str, ...] = ()
    elision: str = ""
    comment: str = "//"
    deepest: int | None = None

    @property
    def closing(self) -> str:
        """What ends a body: a brace, a word or nothing."""
        return self.elision.rpartition(" ")[2].replace("...", "")

    @property
    def folders(self) -> tuple[str, ...]:
        """The query folders of this language."""
        return self.queries or (self.id,)


_BRACES = " { ... }"

LANGUAGES: tuple[Language, ...] = (
    Language(
        "python", "Python", "tree_sitter_python",
        (".py", ".pyi", ".pyw", ".pyx"), ("python",),
        files=("SConstruct", "SConscript", "wscript"), shebangs=("python",),
        elision=" ...", comment="#",
    ),
    Language(
        "javascript", "JavaScript", "tree_sitter_javascript",
        (".js", ".jsx", ".mjs", ".cjs"), ("javascript", "javascriptreact"),
        files=("Jakefile",), shebangs=("node", "bun"),
        queries=("ecma", "javascript"), elision=_BRACES,
    ),
    Language(
        "typescript", "TypeScript", "tree_sitter_typescript",
        (".ts", ".mts", ".cts"), ("typescript",), shebangs=("deno", "ts-node", "tsx"),
        function="language_typescript", queries=("ecma", "typescript"), elision=_BRACES,
    ),
    Language(
        "tsx", "TSX", "tree_sitter_typescript", (".tsx",), ("typescriptreact",),
        function="language_tsx", queries=("ecma", "typescript", "tsx"), elision=_BRACES,
    ),
    Language(
        "java", "Java", "tree_sitter_java", (".java",), ("java",), elision=_BRACES,
    ),
    Language(
        "c", "C", "tree_sitter_c", (".c", ".h"), ("c",), shebangs=("tcc",), elision=_BRACES,
    ),
    Language(
        "cpp", "C++", "tree_sitter_cpp",
        (".cc", ".cpp", ".cxx", ".c++", ".hh", ".hpp", ".hxx", ".h++", ".ipp", ".inl", ".tpp",
         ".cu", ".cuh"),
        ("cpp", "cuda-cpp"), queries=("c", "cpp"), elision=_BRACES,
    ),
    Language(
        "csharp", "C#", "tree_sitter_c_sharp", (".cs", ".csx"), ("csharp",), elision=_BRACES,
    ),
    Language("go", "Go", "tree_sitter_go", (".go",), ("go",), elision=_BRACES),
    Language("rust", "Rust", "tree_sitter_rust", (".rs",), ("rust",), elision=_BRACES),
    Language(
        "ruby", "Ruby", "tree_sitter_ruby",
        (".rb", ".rake", ".gemspec", ".ru", ".rbi"), ("ruby",),
        files=("Gemfile", "Rakefile", "Guardfile", "Vagrantfile", "Podfile", "Brewfile"),
        shebangs=("ruby", "jruby"), elision=" ... end", comment="#",
    ),
    Language(
        "php", "PHP", "tree_sitter_php", (".php", ".phtml", ".php5", ".inc"), ("php",),
        shebangs=("php",), function="language_php", elision=_BRACES,
    ),
    Language(
        "bash", "Bash", "tree_sitter_bash",
        (".sh", ".bash", ".zsh", ".ksh", ".bats", ".ebuild"), ("shellscript", "bash", "sh", "zsh"),
        files=(".bashrc", ".bash_profile", ".bash_aliases", ".profile", ".zshrc", "PKGBUILD"),
        shebangs=("sh", "bash", "dash", "zsh", "ksh", "ash"), elision=_BRACES, comment="#",
    ),
    Language(
        "lua", "Lua", "tree_sitter_lua", (".lua", ".rockspec"), ("lua",),
        shebangs=("lua", "luajit"), elision=" ... end", comment="--",
    ),
    Language(
        "kotlin", "Kotlin", "tree_sitter_kotlin", (".kt", ".kts"), ("kotlin",),
        shebangs=("kotlin",), elision=_BRACES,
    ),
    Language(
        "scala", "Scala", "tree_sitter_scala", (".scala", ".sc", ".sbt"), ("scala",),
        shebangs=("scala",), elision=_BRACES,
    ),
    Language(
        "swift", "Swift", "tree_sitter_swift", (".swift",), ("swift",),
        shebangs=("swift",), elision=_BRACES,
    ),
    Language(
        "html", "HTML", "tree_sitter_html", (".html", ".htm", ".xhtml"), ("html",), comment="",
    ),
    Language("css", "CSS", "tree_sitter_css", (".css",), ("css",), elision=_BRACES, comment=""),
    Language(
        "json", "JSON", "tree_sitter_json",
        (".json", ".jsonc", ".json5", ".geojson", ".webmanifest", ".ipynb"),
        ("json", "jsonc"), files=(".prettierrc", ".eslintrc", ".babelrc", "composer.lock"),
        comment="",
    ),
    Language(
        "yaml", "YAML", "tree_sitter_yaml", (".yaml", ".yml"), ("yaml", "dockercompose"),
        files=(".clang-format", ".clang-tidy"), comment="#", deepest=200,
    ),
    Language(
        "toml", "TOML", "tree_sitter_toml", (".toml",), ("toml",),
        files=("Cargo.lock", "poetry.lock", "uv.lock", "Pipfile"), comment="#",
    ),
    Language(
        "sql", "SQL", "tree_sitter_sql", (".sql", ".ddl", ".dml", ".psql"), ("sql", "postgres"),
        comment="--",
    ),
    Language(
        "markdown", "Markdown", "tree_sitter_markdown",
        (".md", ".markdown", ".mkd", ".mdx"), ("markdown",), comment="",
    ),
)  # fmt: skip

_BY_ID = {language.id: language for language in LANGUAGES}
_BY_LSP_ID = {name: language for language in LANGUAGES for name in language.lsp_ids}
_BY_EXTENSION = {end: language for language in LANGUAGES for end in language.extensions}
_BY_FILE = {name: language for language in LANGUAGES for name in language.files}
_BY_SHEBANG = {name: language for language in LANGUAGES for name in language.shebangs}

# "#!/usr/bin/env -S python3.11 -u": the interpreter's name without its version.
_SHEBANG = re.compile(
    r"#!\s*(?:\S*/)?(?:env\s+(?:-\S+\s+|\w+=\S*\s+)*(?:\S*/)?)?([a-z][a-z-]*?)[\d.]*(?:\s|$)"
)
# What only C++ says, to tell a header's language.
_CPP_ONLY = re.compile(
    r"^\s*(?:template\s*<|namespace\b|class\s+\w+|using\s+\w|(?:public|private|protected)\s*:"
    r"|#\s*include\s*<[a-z_]+>)",
    re.MULTILINE,
)
_SNIFFED = 20_000


def language_named(name: str) -> Language | None:
    """The language with this id of ours or of an editor, if we know it."""
    return _BY_ID.get(name) or _BY_LSP_ID.get(name)


def detect(language_id: str | None, path: str = "", text: str = "") -> Language | None:
    """The language of a document; None is plain text.

    A language id that we know wins over the file name (the user may have set it), then come
    file name, extension (case ignored) and the shebang of ``text``.
    """
    named = language_named(language_id) if language_id else None
    return named or _by_path(path, text) or _by_shebang(text)


def _by_path(path: str, text: str) -> Language | None:
    # A Windows path may come to us on any system, so both separators count.
    name = PurePath(path.replace("\\", "/")).name
    if name in _BY_FILE:
        return _BY_FILE[name]
    suffix = PurePath(name).suffix.lower()
    if suffix == ".h" and _CPP_ONLY.search(text, 0, _SNIFFED):
        return _BY_ID["cpp"]
    return _BY_EXTENSION.get(suffix)


def _by_shebang(text: str) -> Language | None:
    if not text.startswith(("#!", "\ufeff#!")):
        return None
    match = _SHEBANG.match(text[:500].lstrip("\ufeff").splitlines()[0])
    return _BY_SHEBANG.get(match[1]) if match else None


@cache
def grammar(language: Language) -> Grammar | None:
    """The tree-sitter grammar, or None where it cannot be loaded."""
    try:
        module = importlib.import_module(language.module)
        return Grammar(getattr(module, language.function)())
    except (ImportError, AttributeError, ValueError, TypeError, OSError) as error:
        log.warning("No grammar for %s, it is plain text now: %s", language.name, error)
        return None


@cache
def query(language: Language, name: QueryName) -> Query | None:
    """A compiled query, or None where the language has none that fits its grammar."""
    loaded = grammar(language)
    source = query_source(language, name)
    if loaded is None or not source:
        return None
    try:
        compiled: Query = Query(loaded, source)
    except QueryError as error:
        log.warning("The query %s of %s does not fit its grammar: %s", name, language.name, error)
        return None
    return compiled


def prepare(language: Language) -> None:
    """Load the grammar and all queries now: up to half a second once, for some languages.

    Otherwise whoever asks first waits for it.
    """
    for name in get_args(QueryName):
        query(language, name)


def query_source(language: Language, name: QueryName) -> str:
    """The joined text of a language's query files; empty where there is none."""
    parts = []
    for folder in language.folders:
        file = _QUERIES / folder / f"{name}.scm"
        if file.is_file():
            parts.append(file.read_text(encoding="utf-8"))
    return "\n".join(parts)
