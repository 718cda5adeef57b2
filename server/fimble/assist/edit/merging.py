"""Tests into the file that has some already: imports to the imports, the rest to the end.

What the file defines already is not defined once more. Works on what the two texts define;
knows no test framework.
"""

from __future__ import annotations

import re

from fimble.assist.edit.destination import Destination
from fimble.assist.edit.problems import Problem
from fimble_context.syntax import Document, Symbol, imports, outline

__all__ = ["merged"]

#: What begins a file of some languages, and is there already.
_PREAMBLE = re.compile(r"^(?:package\s+[\w.]+;?|<\?php|namespace\s+[\w.\\]+;|using\s+[\w.]+;)\s*$")
_TEST = re.compile(
    r"def test|class \w*Test|\b(?:it|test|describe|Deno\.test)\s*[(.]|func Test|#\[(?:\w+::)?test"
    r"|@Test|\bTEST(?:_\w+)?\s*\(|TEST_CASE|\[(?:Fact|Theory|Test|TestMethod)|\bassert|\bspec\b"
    r"|function test|should\b"
)


def merged(found: Destination, code: str) -> str | Problem:
    """The whole text of the test file with ``code`` in it."""
    if not _TEST.search(code):
        return Problem("no-tests", "The answer has no tests.")
    newline = found.newline if found.is_new else found.document.newline
    code = code.replace("\r\n", "\n").strip("\n")
    if found.is_own:
        return _inside_module(found.document, code, newline)
    if not found.document.text.strip():
        return f"{code}\n".replace("\n", newline)
    new = Document(code, path=str(found.path), language=found.document.language)
    brought, rest = _parted(found.document, new)
    text = _with_container(found.document, rest, newline)
    if text is None:
        fresh = _without_known(found.document, rest)
        if not fresh.strip():
            return Problem("unchanged", "The file has all of these tests already.", again=False)
        text = _appended(found.document.text, fresh, newline)
    return _with_imports(found.document, text, brought, newline)


def _parted(there: Document, new: Document) -> tuple[list[str], str]:
    """Imports that the file has not, and the rest of the new text."""
    known = {line.strip() for line in there.text.splitlines()}
    spans = sorted({(item.start, item.end) for item in imports(new)})
    top = {(new.line_of(start), new.line_of(max(start, end - 1))) for start, end in spans}
    taken: set[int] = set()
    brought: list[str] = []
    for first, last in sorted(top):
        lines = [new.line_text(line) for line in range(first, last + 1)]
        if first in taken or lines[0][:1] in (" ", "\t"):
            continue  # within a function
        taken |= set(range(first, last + 1))
        if not all(line.strip() in known for line in lines):
            brought.append("\n".join(lines))
    left = [
        new.line_text(line)
        for line in range(new.line_count)
        if line not in taken and not _PREAMBLE.match(new.line_text(line))
    ]
    return brought, "\n".join(left).strip("\n")


def _without_known(there: Document, code: str) -> str:
    """The code without definitions at its top that the file has."""
    known = {symbol.name for symbol in outline(there)}
    new = Document(code, path=there.path, language=there.language)
    for symbol in reversed(outline(new)):
        if symbol.name in known:
            code = code[: symbol.start].rstrip() + "\n\n" + code[symbol.end :].lstrip("\n")
    return code.strip("\n")


def _with_container(there: Document, code: str, newline: str) -> str | None:
    """With new members in the class that both have; None where there is no such class."""
    new = Document(code, path=there.path, language=there.language)
    for symbol in outline(new):
        own = next((each for each in outline(there) if each.name == symbol.name), None)
        if own is None or not symbol.children or own.body_end is None:
            continue
        known = {child.name for child in own.children}
        members = [child for child in symbol.children if child.name not in known]
        if members:
            return _in_body(there, own, [_lines(new, member) for member in members], newline)
    return None


def _in_body(there: Document, own: Symbol, members: list[str], newline: str) -> str:
    assert own.body_end is not None
    text = there.text
    closing = there.line_start(there.line_of(max(0, own.body_end - 1)))
    is_braced = text[own.body_end - 1 : own.body_end] == "}"
    added = "\n\n".join(members).replace("\n", newline)
    if is_braced:
        return f"{text[:closing].rstrip()}{newline}{newline}{added}{newline}{text[closing:]}"
    return f"{text[: own.end].rstrip()}{newline}{newline}{added}{text[own.end :]}"


def _lines(document: Document, symbol: Symbol) -> str:
    """A symbol's text from the beginning of its line, with what stands directly above it."""
    line = document.line_of(symbol.start)
    return document.text[document.line_start(line) : symbol.end]


def _inside_module(there: Document, code: str, newline: str) -> str | Problem:
    """Rust's way: in ``mod tests`` of the same file."""
    new = Document(code, path=there.path, language=there.language)
    inner = next((each for each in outline(new) if each.name == "tests"), None)
    body = code
    if inner is not None and inner.body_start is not None and inner.body_end is not None:
        body = code[inner.body_start + 1 : inner.body_end - 1].strip("\n")
    else:
        body = "\n".join(f"    {line}" if line.strip() else "" for line in code.split("\n"))
    own = next((each for each in outline(there) if each.name == "tests"), None)
    if own is None or own.body_end is None:
        if "use super::" not in body:
            body = f"    use super::*;\n\n{body}"
        module = f"#[cfg(test)]\nmod tests {{\n{body}\n}}"
        return _appended(there.text, module, newline, blank=1)
    known = {line.strip() for line in there.text[own.start : own.end].splitlines()}
    kept = [
        line
        for line in body.split("\n")
        if not (line.strip().startswith("use ") and line.strip() in known)
    ]
    for child in own.children:
        if re.search(rf"\bfn {re.escape(child.name)}\b", body):
            return Problem("unchanged", f"The file has a test {child.name} already.", again=False)
    return _in_body(there, own, ["\n".join(kept).strip("\n")], newline)


def _appended(text: str, code: str, newline: str, blank: int = 2) -> str:
    return (
        f"{text.rstrip()}{newline * (blank + 1)}{code}".replace("\r\n", "\n").replace("\n", newline)
        + newline
        if newline != "\n"
        else f"{text.rstrip()}{newline * (blank + 1)}{code}{newline}"
    )


def _with_imports(there: Document, text: str, brought: list[str], newline: str) -> str:
    """``text``, which begins as the file does, with more imports behind the last one."""
    if not brought:
        return text
    ends = [item.end for item in imports(there) if not _is_inside(there, item.start)]
    added = "\n".join(brought).replace("\n", newline)
    if not ends:
        return f"{added}{newline}{newline}{text}"
    line = there.line_of(max(0, max(ends) - 1))
    end = there.line_end(line)
    return f"{text[:end]}{newline}{added}{text[end:]}"


def _is_inside(document: Document, offset: int) -> bool:
    start = document.line_start(document.line_of(offset))
    return document.text[start : start + 1] in (" ", "\t")
