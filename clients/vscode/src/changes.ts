/** A change of one document, out of what the server sends for it. */

import type * as vscode from 'vscode';
import type { LanguageClient, WorkspaceEdit } from 'vscode-languageclient/node';

export interface Change {
    readonly uri: vscode.Uri;
    readonly edits: readonly vscode.TextEdit[];
    /** The document’s version that it is for; undefined for a file that is not open. */
    readonly version: number | undefined;
    /** Whether it makes the file. */
    readonly isNew: boolean;
    /** What it does, and what else a person should know of it. */
    readonly about: string;
    readonly notes: string;
}

/** The change of a versioned edit, which the server makes for one document at a time. */
export async function changeOf(client: LanguageClient, made: WorkspaceEdit): Promise<Change> {
    const [entry] = (await client.protocol2CodeConverter.asWorkspaceEdit(made)).entries();
    if (entry === undefined) {
        throw new Error('Nothing was changed: the answer has no change in it.');
    }
    const [uri, edits] = entry;
    const changes = made.documentChanges ?? [];
    const text = changes.find((change) => 'textDocument' in change);
    const [annotation] = Object.values(made.changeAnnotations ?? {});
    return {
        uri,
        edits,
        version: text?.textDocument.version ?? undefined,
        isNew: changes.some((change) => 'kind' in change && change.kind === 'create'),
        about: annotation?.label ?? 'Edit',
        notes: annotation?.description ?? '',
    };
}
