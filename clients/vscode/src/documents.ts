/** Which documents the server hears of, and the one that a command is about. */

import * as vscode from 'vscode';

/** Files, documents without one, notebooks’ cells, and files of virtual workspaces. */
const SCHEMES = ['file', 'untitled', 'vscode-notebook-cell', 'vscode-vfs', 'vscode-test-web'];

export const SELECTOR = SCHEMES.map((scheme) => ({ scheme }));

export function isOurs(document: vscode.TextDocument): boolean {
    return SCHEMES.includes(document.uri.scheme);
}

/** The editor that was used last. Throws where there is none. */
export function lastEditor(): vscode.TextEditor {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined) {
        throw new Error('Open a document first.');
    }
    return editor;
}
