/** The place in a document that a question is about, and the one that an answer’s code goes to. */

import * as vscode from 'vscode';
import type { LanguageClient, WorkspaceEdit } from 'vscode-languageclient/node';

import { changeOf } from '../changes';
import { lastEditor } from '../documents';
import { selectedPlace } from '../edits';
import type { Preview } from '../preview';
import type { Session } from '../server/session';
import type { Attached } from './conversations';
import type { Block } from './messages';

/** What is selected, or where the cursor is. */
export function attachedSelection(session: Session): Attached {
    const { document, selection } = lastEditor();
    const { start, end } = selection;
    const first = start.line + 1;
    // A selection up to the beginning of a line has nothing of that line.
    const last = end.character === 0 && end.isAfter(start) ? end.line : end.line + 1;
    const lines = first === last ? String(first) : `${first}-${last}`;
    return {
        label: `${vscode.workspace.asRelativePath(document.uri)}:${lines}`,
        attachment: { kind: 'selection', ...selectedPlace(session) },
    };
}

/** Puts code in place of what is selected. */
export async function insert(text: string): Promise<void> {
    const editor = lastEditor();
    const done = await editor.edit((edit) => {
        edit.replace(editor.selection, text);
    });
    if (!done) {
        throw new Error('Nothing was inserted: the document cannot be edited.');
    }
    await vscode.window.showTextDocument(editor.document, editor.viewColumn);
}

/** Shows what code changes where it belongs; without a place of its own, in the last editor. */
export async function apply(client: LanguageClient, preview: Preview, block: Block): Promise<void> {
    const { code2ProtocolConverter: toServer, protocol2CodeConverter: fromServer } = client;
    const uri = block.uri === null ? lastEditor().document.uri : fromServer.asUri(block.uri);
    // The server has to have it open.
    await vscode.workspace.openTextDocument(uri);
    const made = await client.sendRequest<{ edit: WorkspaceEdit }>('fimble/apply', {
        uri: toServer.asUri(uri),
        range: block.range,
        version: block.version,
        text: block.text,
    });
    await preview.show(await changeOf(client, made.edit));
}
