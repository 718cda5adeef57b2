"""Edits as editors take them: made with progress, cancellable, versioned, moved along, refused.

A document may go on being typed in while an edit of it is made: what is typed is noted, and the
edit is moved to where it still fits, or refused. An answer that is no edit is shown, never
applied.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.progress import Progress

from fimble import system
from fimble.assist.edit.service import EditOutcome, EditRequest, EditService, rebased
from fimble.errors import EditRefused, EngineError, FimbleError
from fimble.lsp.abilities import EditorAbilities
from fimble.lsp.chat_params import failure
from fimble.lsp.convert import document_key, range_of
from fimble.lsp.engine_host import EngineHost
from fimble.lsp.progress import Display
from fimble.lsp.settings import Settings
from fimble.lsp.text_sync import DocumentListener, OpenDocuments
from fimble_context.syntax import Document, Edit

if TYPE_CHECKING:
    from fimble.assist.edit.hunks import Hunk

__all__ = ["EditHost"]

logger = logging.getLogger(__name__)

_ANNOTATION = "fimble"


class EditHost(DocumentListener):
    """Makes edits for one session. ``show_answer`` keeps an answer that became no edit in a file,
    and shows it where the editor can; None if it cannot be kept.
    """

    def __init__(
        self,
        documents: OpenDocuments,
        host: EngineHost,
        service: EditService,
        settings: Callable[[], Settings],
        progress: Progress,
        abilities: EditorAbilities,
        show_answer: Callable[[str], Coroutine[None, None, Path | None]],
    ) -> None:
        self._documents = documents
        self._host = host
        self._service = service
        self._settings = settings
        self._progress = progress
        self._show_answer = show_answer
        self.abilities = abilities
        self._typed: dict[str, list[list[Edit]]] = {}
        self._closed: set[str] = set()

    # --- what happens to documents meanwhile -----------------------------------------------

    def opened(self, uri: str, document: Document) -> None:
        # Opened again, it may have any text.
        self.closed(uri)

    def changed(self, uri: str, document: Document, edits: Sequence[Edit]) -> None:
        for noted in self._typed.get(document_key(uri), ()):
            noted += edits

    def closed(self, uri: str) -> None:
        if document_key(uri) in self._typed:
            self._closed.add(document_key(uri))

    # --- making ------------------------------------------------------------------------------

    async def make(
        self, uri: str, request: EditRequest, title: str, token: str | int | None
    ) -> tuple[types.WorkspaceEdit, EditOutcome]:
        """The edit for the document as it is when it is done. Raises JsonRpcException."""
        key, noted = document_key(uri), list[Edit]()
        self._typed.setdefault(key, []).append(noted)
        try:
            outcome = await self._with_progress(request, title, token)
            edit = self._workspace_edit(uri, key, outcome, noted)
        except FimbleError as error:
            raise await self._refused(error) from error
        finally:
            self._typed[key] = [each for each in self._typed[key] if each is not noted]
            if not self._typed[key]:
                del self._typed[key]
                self._closed.discard(key)
        self._host.chat_worked(outcome.cost.model, outcome.cost.provider)
        _log(outcome)
        return edit

    async def _with_progress(
        self, request: EditRequest, title: str, token: str | int | None
    ) -> EditOutcome:
        display = Display(self._progress, token, title, asks=self.abilities.progress)
        said = -1

        def heard(tokens: int) -> None:
            nonlocal said
            if tokens // 8 > said:
                said = tokens // 8
                display.report(f"{tokens} tokens so far")

        return await display.during(self._service.edit(request, heard), "The edit was cancelled.")

    async def _refused(self, error: FimbleError) -> JsonRpcException:
        if isinstance(error, EngineError):
            self._host.chat_failed(error)
        refusal = failure(error)
        if isinstance(error, EditRefused) and error.answer:
            refusal.data = {**(refusal.data or {}), "answer": error.answer}
            path = await self._show_answer(f"{error}\n\n{error.answer}\n")
            if path is not None and not self.abilities.shows:
                refusal.message += f" It is in {path}."
        return refusal

    # --- for the editor ------------------------------------------------------------------------

    @property
    def confirms(self) -> bool:
        """Whether a change is to be seen before it is made."""
        return self._settings().edit.confirm

    def _workspace_edit(
        self, uri: str, key: str, outcome: EditOutcome, noted: Sequence[Edit]
    ) -> tuple[types.WorkspaceEdit, EditOutcome]:
        if not outcome.is_own:
            return self._elsewhere(outcome), outcome
        document = self._documents.get(uri)
        if document is None or key in self._closed:
            raise _moved(outcome)
        outcome = rebased(outcome, document, noted)
        if outcome.before != document.text:
            raise _moved(outcome)
        return self.changes(uri, document, document.version, outcome), outcome

    def _elsewhere(self, outcome: EditOutcome) -> types.WorkspaceEdit:
        uri = system.uri_from_path(Path(outcome.path))
        document = self._documents.get(uri)
        if document is not None and document.text != outcome.before:
            raise _moved(outcome)
        if outcome.is_new and not self.abilities.creates:
            raise EditRefused(
                f"{Path(outcome.path).name} would have to be made, which this editor cannot do.",
                next_step="Make the empty file, and ask again.",
                name="no-file",
                answer=outcome.answer,
            )
        there = document or Document(outcome.before, path=outcome.path)
        version = document.version if document is not None else None
        edit = self.changes(uri, there, version, outcome)
        if outcome.is_new:
            create = types.CreateFile(uri, options=types.CreateFileOptions(ignore_if_exists=False))
            if self.abilities.annotations:
                create.annotation_id = _ANNOTATION
            edit.document_changes = [create, *(edit.document_changes or ())]
        return edit

    def changes(
        self, uri: str, document: Document, version: int | None, outcome: EditOutcome
    ) -> types.WorkspaceEdit:
        """An outcome for ``document`` as this editor takes it, annotated where it can be."""
        edits = [self._text_edit(document, hunk) for hunk in outcome.hunks]
        if not self.abilities.versions:
            return types.WorkspaceEdit(changes={uri: edits})
        identifier = types.OptionalVersionedTextDocumentIdentifier(uri, version)
        if not self.abilities.annotations:
            change = types.TextDocumentEdit(identifier, edits)
            return types.WorkspaceEdit(document_changes=[change])
        annotated = [
            types.AnnotatedTextEdit(_ANNOTATION, edit.range, edit.new_text) for edit in edits
        ]
        annotation = types.ChangeAnnotation(
            outcome.about,
            needs_confirmation=self.confirms,
            description=_description(outcome),
        )
        return types.WorkspaceEdit(
            document_changes=[types.TextDocumentEdit(identifier, annotated)],
            change_annotations={_ANNOTATION: annotation},
        )

    def _text_edit(self, document: Document, hunk: Hunk) -> types.TextEdit:
        span = range_of(document, hunk.start, hunk.end, self._documents.encoding)
        return types.TextEdit(span, hunk.text)


def _description(outcome: EditOutcome) -> str | None:
    """Who made a change and what else a person should know; None where there is nothing."""
    # Code that was applied from an answer names no model.
    made_by = (f"by {outcome.cost.model}.",) if outcome.cost.model else ()
    return " ".join((*made_by, *outcome.notes)) or None


def _moved(outcome: EditOutcome) -> EditRefused:
    return EditRefused(
        "Nothing was changed. The document is another one by now.",
        next_step="Ask again.",
        name="moved",
        answer=outcome.answer,
    )


def _log(outcome: EditOutcome) -> None:
    usage, timings = outcome.cost.usage, outcome.cost.timings
    logger.info(
        "edit: %s, %d tries, %d hunks, prompt %d tokens (%d reused), answer %d tokens, "
        "queued %.0f ms, prefill %.0f ms, decode %.0f ms",
        outcome.task,
        outcome.cost.tries,
        len(outcome.hunks),
        usage.prompt_tokens,
        usage.reused_tokens,
        usage.completion_tokens,
        timings.queued_ms,
        timings.prefill_ms,
        timings.decode_ms,
    )
