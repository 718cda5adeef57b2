/** A change that is shown as a diff, and made or discarded by the user. */

import * as vscode from 'vscode';

import type { Change } from './changes';
import { changedText } from './replacing';

export const PREVIEW_SCHEME = 'fimble-preview';

const MOVED = 'Nothing was changed: the document was edited meanwhile. Ask again.';

interface Shown {
    readonly change: Change;
    /** The document as it was when the change was shown; undefined for a new file. */
    readonly document: vscode.TextDocument | undefined;
    readonly version: number | undefined;
    /** Of the text with the change made. */
    readonly uri: vscode.Uri;
    /** What is said of it in the status bar. */
    readonly notes: vscode.Disposable;
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

    /** Shows what `change` makes of its document; an older preview is discarded. */
    async show(change: Change, title = change.about): Promise<void> {
        await this.discard();
        const document = change.isNew
            ? undefined
            : await vscode.workspace.openTextDocument(change.uri);
        const version = document?.version;
        if (change.version !== undefined && change.version !== version) {
            throw new Error(MOVED);
        }
        this.count += 1;
        const own = { scheme: PREVIEW_SCHEME, authority: '' };
        const uri = change.uri.with({ ...own, query: String(this.count) });
        const before = document?.uri ?? change.uri.with({ ...own, query: `${this.count}.new` });
        this.texts.set(uri.toString(), textWith(change, document));
        const notes = vscode.window.setStatusBarMessage(change.notes);
        this.shown = { change, document, version, uri, notes };
        const label = `${vscode.workspace.asRelativePath(change.uri)}: ${title}`;
        // First, so that the keys hold as soon as the diff is there.
        await setPreviewing(true);
        await vscode.commands.executeCommand('vscode.diff', before, uri, label, { preview: true });
    }

    /** `fimble.acceptEdit` */
    async accept(): Promise<void> {
        const { shown } = this;
        if (shown === undefined) {
            return;
        }
        await this.discard();
        const { change, document, version } = shown;
        if (document?.version !== version) {
            throw new Error(MOVED);
        }
        // What asks for a confirmation has been confirmed by now.
        const confirmed = new vscode.WorkspaceEdit();
        if (change.isNew) {
            confirmed.createFile(change.uri); // refused where there is one by now
        }
        confirmed.set(change.uri, [...change.edits]);
        if (!(await vscode.workspace.applyEdit(confirmed))) {
            throw new Error('Nothing was changed: the editor refused the edit.');
        }
        await vscode.window.showTextDocument(change.uri);
    }

    /** `fimble.discardEdit` */
    async discard(): Promise<void> {
        const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
        const ours = tabs.filter((tab) => this.isOurs(tab));
        await this.forget();
        await vscode.window.tabGroups.close(ours);
    }

    private async forget(): Promise<void> {
        this.shown?.notes.dispose();
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

/** The text of a document, empty where there is none, with the change made. */
function textWith({ edits }: Change, document: vscode.TextDocument | undefined): string {
    const replacements = edits.map(({ range, newText }) => ({
        start: document?.offsetAt(range.start) ?? 0,
        end: document?.offsetAt(range.end) ?? 0,
        text: newText,
    }));
    return changedText(document?.getText() ?? '', replacements);
}

async function setPreviewing(value: boolean): Promise<void> {
    await vscode.commands.executeCommand('setContext', 'fimble.previewing', value);
}
