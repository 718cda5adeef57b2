/** The place in a document that a question is about, and the one that an answer’s code goes to. */

import * as vscode from 'vscode';
import type { LanguageClient } from 'vscode-languageclient/node';

import type { Attached } from './conversations';

/** The editor that was used last. Throws where there is none. */
export function lastEditor(): vscode.TextEditor {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined) {
        throw new Error('Open a document first.');
    }
    return editor;
}

/** What is selected, or where the cursor is. */
export function attachedSelection({ code2ProtocolConverter: convert }: LanguageClient): Attached {
    const { document, selection } = lastEditor();
    const { start, end } = selection;
    const first = start.line + 1;
    // A selection up to the beginning of a line has nothing of that line.
    const last = end.character === 0 && end.isAfter(start) ? end.line : end.line + 1;
    const lines = first === last ? String(first) : `${first}-${last}`;
    return {
        label: `${vscode.workspace.asRelativePath(document.uri)}:${lines}`,
        attachment: {
            kind: 'selection',
            uri: convert.asUri(document.uri),
            range: convert.asRange(selection),
        },
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
