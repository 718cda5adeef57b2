"""What an editor said that it can do, the ``experimental`` capabilities of ours among it."""

from __future__ import annotations

from lsprotocol import types

from fimble.lsp.plain import plain

__all__ = ["EditorAbilities", "is_experimental"]


def is_experimental(capabilities: types.ClientCapabilities, name: str) -> bool:
    """Whether the editor's ``experimental`` has ``{"fimble": {name: true}}``."""
    experimental = plain(capabilities.experimental)
    ours = experimental.get("fimble") if isinstance(experimental, dict) else None
    return isinstance(ours, dict) and ours.get(name) is True


class EditorAbilities:
    """One for a session, with nothing in it until the editor has said what it can do."""

    def __init__(self) -> None:
        #: Whether it applies edits that we send, to the version of a document that we name, with
        #: a label for each, and whether an edit may make a file.
        self.applies = self.versions = self.annotations = self.creates = False
        #: Whether it shows progress that we begin, and documents that we name.
        self.progress = self.shows = False

    def learn(self, capabilities: types.ClientCapabilities) -> None:
        workspace, window = capabilities.workspace, capabilities.window
        edit = workspace.workspace_edit if workspace else None
        operations = (edit.resource_operations or ()) if edit else ()
        self.applies = bool(workspace and workspace.apply_edit)
        self.versions = bool(edit and edit.document_changes)
        self.annotations = bool(self.versions and edit and edit.change_annotation_support)
        self.creates = self.versions and types.ResourceOperationKind.Create in operations
        self.progress = bool(window and window.work_done_progress)
        self.shows = bool(window and window.show_document and window.show_document.support)
