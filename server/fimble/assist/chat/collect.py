"""From what a message is about to pieces of text, each with the reason why it is there.

Every file that is read has passed the policy before, also one that was named explicitly; what
is refused is left out and said. Blocks on nothing but what it awaits.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from fimble import system
from fimble.assist.chat.git_diff import git_diff
from fimble.assist.chat.names import file_names
from fimble.assist.chat.pieces import PIECE_KINDS, Attachment, Piece, Sources, Target
from fimble.assist.layout import prompt_text
from fimble.assist.policy import file_refusal
from fimble.assist.tokens import TokenCounts
from fimble.errors import FimbleError
from fimble_context.assembly import Diagnostic, EditContext, LeftOut, Workspace, edit_context
from fimble_context.candidates import Near, SimilarCode, fact_chunk, still_there, words_of
from fimble_context.index import Definition, Fact, Lookup
from fimble_context.syntax import Document, detect
from fimble_context.workspace import Limits, Policy, Refusal, mask_secrets, read

__all__ = ["Collected", "collect"]

_LIMITS = Limits()
_MOST_DEFINITIONS = 3
_MOST_LISTED = 150
_MOST_WORDS = 200


class Collected:
    """Pieces in the order of a prompt, and what could have been there and is not."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self.left_out: list[LeftOut] = []

    @property
    def pieces(self) -> list[Piece]:
        """The pieces, each text of a file once."""
        ordered = sorted(self._pieces, key=lambda piece: PIECE_KINDS.index(piece.kind))
        # Where two have the same text, the one nearer to the question stays.
        last = {(piece.path, piece.text): piece for piece in ordered}
        return [piece for piece in ordered if last[piece.path, piece.text] is piece]

    def add(self, *pieces: Piece) -> None:
        self._pieces += (piece for piece in pieces if piece.text.strip())

    def refuse(self, path: str, reason: object) -> None:
        self.left_out.append(LeftOut(path, str(reason)))


async def collect(
    attachments: Sequence[Attachment], message: str, sources: Sources, room: int
) -> Collected:
    """The pieces for a message. ``room`` (tokens) is what all of them may have later."""
    collected = Collected()
    for attachment in attachments:
        match attachment.kind:
            case "selection" | "diagnostics":
                _selection(attachment, sources, room, collected)
            case "file":
                await _file(attachment, sources, collected)
            case "symbol":
                await _symbol(attachment, sources, collected)
            case "diff":
                await _diff(attachment, sources, collected)
            case "open files":
                _open_files(sources, collected)
            case "workspace":
                await _workspace(message, sources, collected)
    return collected


# --- a place in an open document ---------------------------------------------------------


def _selection(attachment: Attachment, sources: Sources, room: int, collected: Collected) -> None:
    document = attachment.document
    if document is None:
        why = "nothing is selected" if attachment.mention else "it is not open in the editor"
        collected.refuse(attachment.name, why)
        return
    path = Path(document.path) if document.path else None
    shown = sources.shown_path(path) if path is not None else attachment.source
    refused = _document_refusal(document, sources.policy)
    if refused is not None:
        collected.refuse(shown, refused)
        return
    context = edit_context(
        document,
        attachment.start,
        attachment.end,
        budget=room // 3,
        count_tokens=TokenCounts().with_estimates,
        workspace=sources.workspace(),
        path=path,
        diagnostics=attachment.diagnostics,
    )
    if attachment.kind == "selection":
        collected.add(*_code(attachment, document, context, shown))
        collected.add(
            *(
                Piece(
                    kind=section.kind,
                    path=section.path,
                    reason=section.reason,
                    text=mask_secrets(section.text),
                    language=_language(section.path),
                )
                for section in context.sections
            )
        )
        # What the code itself shows is not left out.
        collected.left_out += (
            item for item in context.left_out if not item.reason.endswith("in the prompt already")
        )
    chosen = attachment.diagnostics if attachment.kind == "diagnostics" else context.diagnostics
    collected.add(_diagnostics(chosen, document, shown))


def _code(
    attachment: Attachment, document: Document, context: EditContext, shown: str
) -> Iterable[Piece]:
    """The whole statements around a selection and, where it is only a part of them, itself."""
    start, end = context.span.start, context.span.end
    headers = ", in ".join(header.strip().splitlines()[-1] for header in context.headers if header)
    language = document.syntax_language
    fence = language.id if language is not None else (document.language or "")
    selected = document.text[attachment.start : attachment.end]
    is_part = bool(selected.strip()) and selected.strip() != document.text[start:end].strip()
    reason = "what the selection is part of" if is_part else "what the question is about"
    yield Piece(
        kind="around",
        path=shown,
        reason=f"{reason}; in {headers}" if headers else reason,
        text=mask_secrets(_whole_lines(document, start, end)),
        language=fence,
        lines=_lines_of(document, start, end),
        target=Target(shown, document.path, attachment.source, start, end, document.version),
    )
    if is_part:
        yield Piece(
            kind="selection",
            path=shown,
            reason="the selection",
            text=mask_secrets(_plain(selected)),
            language=fence,
            lines=_lines_of(document, attachment.start, attachment.end),
            target=Target(
                shown,
                document.path,
                attachment.source,
                attachment.start,
                attachment.end,
                document.version,
            ),
        )


def _whole_lines(document: Document, start: int, end: int) -> str:
    """The text from the start of its first line, so that its indentation is right."""
    before = document.text[document.line_start(document.line_of(start)) : start]
    return _plain((before if not before.strip() else "") + document.text[start:end])


def _diagnostics(chosen: Sequence[Diagnostic], document: Document, shown: str) -> Piece:
    lines = []
    for item in chosen:
        line = document.line_of(item.start) + 1
        source = f" ({item.source})" if item.source else ""
        lines.append(f"line {line}: {' '.join(item.message.split())}{source}\n")
    return Piece("diagnostics", shown, "problems that the editor shows", "".join(lines))


def _document_refusal(document: Document, policy: Policy) -> str | None:
    refused = file_refusal(document, policy)
    if refused is not None and refused.name in ("secret", "ignored"):
        return refused.reason
    return None


# --- files -------------------------------------------------------------------------------


async def _file(attachment: Attachment, sources: Sources, collected: Collected) -> None:
    wanted = attachment.mention or str(attachment.path or attachment.name)
    path = attachment.path or _path_of(attachment.name, sources)
    if isinstance(path, str):
        collected.refuse(attachment.name, path)
        return
    text = await _text_of(path, sources)
    if isinstance(text, Refusal):
        collected.refuse(sources.shown_path(path), text)
        return
    collected.add(_file_piece(path, text, sources, "file", f"asked for by {wanted}"))


def _path_of(name: str, sources: Sources) -> Path | str:
    """The file that a path means, or why there is none.

    What will be refused is found too: the refusal says why, not that there is none. Of what lies
    outside of the workspace the disk is not even asked: on Windows a name can lead to another
    machine, which is told who asks.
    """
    why = "no such file in the workspace"
    for base in sources.bases:
        path = Path(os.path.abspath(base / name))  # noqa: PTH100 - resolve() would follow links
        if sources.policy.folder_of(path) is None:
            why = "outside (of the workspace)"
        elif system.is_plain_name(path) and _is_file(path):
            return path
    return why


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # no file has so long a name
        return False


async def _text_of(path: Path, sources: Sources) -> str | Refusal:
    """A file's text, as the editor has it or from the disk, or why it may not be used."""
    opened = sources.document(path)
    refused = sources.policy.refusal(path, opened[1].text if opened is not None else None)
    if refused is not None:
        return refused
    if opened is not None:
        return opened[1].text
    found = await asyncio.to_thread(read, path, _LIMITS)
    return found if isinstance(found, Refusal) else found.text


def _file_piece(path: Path, text: str, sources: Sources, kind: str, reason: str) -> Piece:
    plain = _plain(text)
    opened = sources.document(path)
    shown = sources.shown_path(path)
    source, version = (opened[0], opened[1].version) if opened is not None else ("", 0)
    return Piece(
        kind=kind,
        path=shown,
        reason=reason,
        text=mask_secrets(plain),
        language=_language(shown),
        lines=(1, max(1, plain.count("\n"))),
        target=Target(shown, str(path), source, 0, len(text), version),
    )


def _open_files(sources: Sources, collected: Collected) -> None:
    for source, document in sources.documents():
        path = Path(document.path) if document.path else None
        refused = _document_refusal(document, sources.policy)
        if refused is not None:
            collected.refuse(sources.shown_path(path) if path else source, refused)
        elif path is not None:
            collected.add(
                _file_piece(path, document.text, sources, "open file", "open in the editor")
            )


# --- definitions, changes, the workspace -------------------------------------------------


async def _symbol(attachment: Attachment, sources: Sources, collected: Collected) -> None:
    workspace = sources.workspace()
    *container, name = re.split(r"[.:#]+", attachment.name.strip(".:#")) or [""]
    found = workspace.index.definitions(name) if workspace is not None and name else []
    within = ".".join(container)
    found = [
        item
        for item in found
        if f".{item.container}".endswith(f".{within}" if within else "")
        and (attachment.path is None or item.path == attachment.path)
    ]
    if not found:
        collected.refuse(attachment.name, "no definition of that name is known")
    for item in found[:_MOST_DEFINITIONS]:
        await _definition(item, f"defines {attachment.name}", sources, collected)
    if len(found) > _MOST_DEFINITIONS:
        more = len(found) - _MOST_DEFINITIONS
        collected.refuse(attachment.name, f"{more} more definitions of that name")


async def _definition(
    item: Definition, reason: str, sources: Sources, collected: Collected
) -> None:
    shown = sources.shown_path(item.path)
    text = await _text_of(item.path, sources)
    if isinstance(text, Refusal):
        collected.refuse(shown, text)
        return
    fact = Fact(*(getattr(item, name) for name in Fact.__slots__))
    if not still_there(text, fact):
        collected.refuse(shown, f"{item.name} is no longer where it was")
        return
    span = fact_chunk(text, fact)
    opened = sources.document(item.path)
    source, version = (opened[0], opened[1].version) if opened is not None else ("", 0)
    collected.add(
        Piece(
            kind="symbol",
            path=shown,
            reason=reason,
            text=mask_secrets(_plain(text[span.start : span.end])),
            language=_language(shown),
            lines=(item.line + 1, item.end_line + 1),
            target=Target(shown, str(item.path), source, span.start, span.end, version),
        )
    )


async def _diff(attachment: Attachment, sources: Sources, collected: Collected) -> None:
    folders = sources.policy.folders
    folder = attachment.path or next(iter(folders), None)
    if folder is None:
        collected.refuse("", "no folder is open whose changes could be looked at")
        return
    folder = folder if folder.is_dir() else folder.parent
    try:
        found = await asyncio.to_thread(
            git_diff, folder, sources.policy, prefer_staged=attachment.staged
        )
    except FimbleError as error:
        collected.refuse("", error.message)
        return
    collected.left_out += found.left_out
    if not found.text:
        collected.refuse("", "nothing has changed since the last commit")
        return
    what = "staged for the next commit" if found.staged else "changed since the last commit"
    collected.add(Piece("diff", "", what, prompt_text(found.text), "diff"))


async def _workspace(message: str, sources: Sources, collected: Collected) -> None:
    """What the workspace has to say about the words of a question."""
    workspace = sources.workspace()
    if workspace is None:
        collected.refuse("", "no folder is open whose code could be looked at")
        return
    words = _names_in(message)
    for word in words:
        for item in workspace.index.definitions(word)[:1]:
            await _definition(item, f"defines {word}, which is in the question", sources, collected)
    collected.add(*await _similar(words, workspace, sources))
    names = await asyncio.to_thread(file_names, sources.policy)
    shown = [sources.shown_path(path) for path in names]
    text = "".join(f"{name}\n" for name in shown[:_MOST_LISTED])
    collected.add(Piece("files", "", "files of the workspace", text))
    if len(shown) > _MOST_LISTED:
        collected.refuse("", f"names of {len(shown) - _MOST_LISTED} more files")


async def _similar(words: Sequence[str], workspace: Workspace, sources: Sources) -> list[Piece]:
    """Definitions that use the words of a question."""
    likely = workspace.index.files_similar(words, 8)
    texts: dict[Path, str] = {}
    for item in likely:
        text = await _text_of(Path(item.path), sources)
        if not isinstance(text, Refusal):
            texts[Path(item.path)] = text
    finder = SimilarCode(Lookup(workspace.index), texts.get, sources.shown_path)
    near = Near((), frozenset(words), frozenset(), ())
    return [
        Piece(
            kind="similar",
            path=found.path,
            reason=found.reason.replace("as the code here does", "as the question does"),
            text=mask_secrets(found.header + found.forms[0]),
            language=_language(found.path),
        )
        for found in finder.candidates(None, near)
    ]


def _names_in(message: str) -> list[str]:
    """Words of a question as code may spell them: themselves, and neighbours joined."""
    found: dict[str, None] = {}
    words = words_of(message)[:_MOST_WORDS]
    for place, word in enumerate(words):
        found.setdefault(word)
        if place + 1 < len(words):
            following = words[place + 1]
            found.setdefault(f"{word.lower()}_{following.lower()}")
            found.setdefault(word.lower() + following.capitalize())
            found.setdefault(word.capitalize() + following.capitalize())
    return list(found)


def _plain(text: str) -> str:
    """Text as prompts have it, ending with a line end."""
    plain = prompt_text(text.removeprefix("\ufeff"))
    return plain if not plain or plain.endswith("\n") else f"{plain}\n"


def _lines_of(document: Document, start: int, end: int) -> tuple[int, int]:
    last = end - 1 if end > start else end
    return document.line_of(start) + 1, document.line_of(last) + 1


def _language(path: str) -> str:
    language = detect(None, path)
    return language.id if language is not None else ""
