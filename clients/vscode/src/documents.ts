/** Which documents the server hears of. */

import type { TextDocument } from 'vscode';

/** Files, documents without one, notebooks’ cells, and files of virtual workspaces. */
const SCHEMES = ['file', 'untitled', 'vscode-notebook-cell', 'vscode-vfs', 'vscode-test-web'];

export const SELECTOR = SCHEMES.map((scheme) => ({ scheme }));

export function isOurs(document: TextDocument): boolean {
    return SCHEMES.includes(document.uri.scheme);
}
