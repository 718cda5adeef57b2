/** A change that is shown as a diff, and made or discarded by the user. */

import * as vscode from 'vscode';

import { changedText, type Replacement } from './replacing';

export const PREVIEW_SCHEME = 'fimble-preview';

const MOVED = 'Nothing was changed: the document was edited meanwhile. Ask again.';

interface Shown {
    readonly document: vscode.TextDocument;
    /** The document’s version that the change is for. */
    readonly version: number;
    readonly edits: readonly vscode.TextEdit[];
    readonly uri: vscode.Uri;
}

export class Preview implements vscode.TextDocumentContentProvider, vscode.Disposable {
    private readonly texts = new Map<string, string>();
    private shown: Shown | undefined;
    private count = 0;
    private readonly listening = vscode.window.tabGroups.onDidChangeTabs(({ closed }) => {
        if (closed.some((tab) => this.isOurs(tab))) {
            void this.forget();
        }
    });

    dispose(): void {
        this.listening.dispose();
    }

    provideTextDocumentContent(uri: vscode.Uri): string {
        return this.texts.get(uri.toString()) ?? '';
    }

    /**
     * Shows what `edit` makes of the document; an older preview is discarded. `version` is the
     * document’s that the edit is for, by default that of now.
     */
    async show(
        document: vscode.TextDocument,
        edit: vscode.WorkspaceEdit,
        title: string,
        version = document.version,
    ): Promise<void> {
        await this.discard();
        if (document.version !== version) {
            throw new Error(MOVED);
        }
        const edits = edit.get(document.uri);
        this.count += 1;
        const uri = document.uri.with({
            scheme: PREVIEW_SCHEME,
            authority: '',
            query: String(this.count),
        });
        this.texts.set(uri.toString(), changedText(document.getText(), replacements(document, edits)));
        this.shown = { document, version, edits, uri };
        const label = `${vscode.workspace.asRelativePath(document.uri)}: ${title}`;
        // First, so that the keys hold as soon as the diff is there.
        await setPreviewing(true);
        await vscode.commands.executeCommand('vscode.diff', document.uri, uri, label, { preview: true });
    }

    /** `fimble.acceptEdit` */
    async accept(): Promise<void> {
        const { shown } = this;
        if (shown === undefined) {
            return;
        }
        await this.discard();
        if (shown.document.version !== shown.version) {
            throw new Error(MOVED);
        }
        // What asks for a confirmation has been confirmed by now.
        const confirmed = new vscode.WorkspaceEdit();
        confirmed.set(shown.document.uri, [...shown.edits]);
        if (!(await vscode.workspace.applyEdit(confirmed))) {
            throw new Error('Nothing was changed: the editor refused the edit.');
        }
        await vscode.window.showTextDocument(shown.document);
    }

    /** `fimble.discardEdit` */
    async discard(): Promise<void> {
        const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
        const ours = tabs.filter((tab) => this.isOurs(tab));
        await this.forget();
        await vscode.window.tabGroups.close(ours);
    }

    private async forget(): Promise<void> {
        this.shown = undefined;
        this.texts.clear();
        await setPreviewing(false);
    }

    private isOurs({ input }: vscode.Tab): boolean {
        return (
            input instanceof vscode.TabInputTextDiff &&
            input.modified.toString() === this.shown?.uri.toString()
        );
    }
}

function replacements(document: vscode.TextDocument, edits: readonly vscode.TextEdit[]): Replacement[] {
    return edits.map(({ range, newText }) => ({
        start: document.offsetAt(range.start),
        end: document.offsetAt(range.end),
        text: newText,
    }));
}

async function setPreviewing(value: boolean): Promise<void> {
    await vscode.commands.executeCommand('setContext', 'fimble.previewing', value);
}
