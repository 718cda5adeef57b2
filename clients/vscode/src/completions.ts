/** Suggestions: those that were offered, word and line acceptance, and where the cursor is. */

import * as vscode from 'vscode';
import type { LanguageClient, Middleware, Position } from 'vscode-languageclient/node';

import { isOurs } from './documents';
import type { Session } from './server/session';

/** A cursor that moves on does not have to be told of. */
const QUIET_MS = 150;

interface Offer {
    readonly id: string;
    readonly text: string;
    readonly start: vscode.Position;
}

export class Completions implements vscode.Disposable {
    private offers: readonly Offer[] = [];
    /** The next request asks again for what has grown; the user did not ask for it. */
    private asksAgain = false;
    private timer: NodeJS.Timeout | undefined;
    private readonly listening: vscode.Disposable;

    constructor(private readonly session: () => Session) {
        this.listening = vscode.window.onDidChangeTextEditorSelection((event) => {
            clearTimeout(this.timer);
            this.timer = setTimeout(() => {
                this.tellCursor(event.textEditor);
            }, QUIET_MS);
        });
    }

    dispose(): void {
        clearTimeout(this.timer);
        this.listening.dispose();
    }

    /** Remembers what is offered, by the ids that the server gave. */
    readonly middleware: Pick<Middleware, 'provideInlineCompletionItems'> = {
        provideInlineCompletionItems: async (document, position, context, token, next) => {
            const triggerKind = this.asksAgain
                ? vscode.InlineCompletionTriggerKind.Automatic
                : context.triggerKind;
            this.asksAgain = false;
            const answer = await next(document, position, { ...context, triggerKind }, token);
            const items = Array.isArray(answer) ? answer : (answer?.items ?? []);
            if (items.length > 0) {
                this.offers = items.flatMap((item) => offerOf(item, position));
            }
            return answer;
        },
    };

    /** Hears from a new server that a suggestion that is shown has grown. */
    listen(client: LanguageClient): void {
        client.onNotification('fimble/suggestionGrew', (grown: { uri: string; position: Position }) => {
            const editor = vscode.window.activeTextEditor;
            const convert = client.protocol2CodeConverter;
            if (
                editor?.document.uri.toString() === convert.asUri(grown.uri).toString() &&
                editor.selection.active.isEqual(convert.asPosition(grown.position))
            ) {
                void this.askAgain();
            }
        });
    }

    /**
     * The editor keeps what it shows when it asks again, and puts the new behind it: it is the next
     * one. Where nothing is shown any more, this command does nothing.
     */
    private async askAgain(): Promise<void> {
        this.asksAgain = true;
        try {
            await vscode.commands.executeCommand('editor.action.inlineSuggest.showNext');
        } finally {
            this.asksAgain = false;
        }
    }

    /** `fimble.acceptWord` and `fimble.acceptLine`: the editor’s own, and the server hears of it. */
    async acceptPart(editorCommand: string): Promise<void> {
        const editor = vscode.window.activeTextEditor;
        const { offers } = this;
        await vscode.commands.executeCommand(editorCommand);
        if (editor === undefined || !this.session().isRunning) {
            return;
        }
        const cursor = editor.selection.active;
        for (const { id, text, start } of offers) {
            const taken = editor.document.getText(new vscode.Range(start, cursor));
            if (start.isBefore(cursor) && text.startsWith(taken)) {
                await this.tell('fimble.partiallyAccepted', id, taken.length);
                return;
            }
        }
    }

    private async tell(command: string, ...args: unknown[]): Promise<void> {
        const params = { command, arguments: args };
        await this.session().client.sendRequest('workspace/executeCommand', params);
    }

    private tellCursor({ document, selection }: vscode.TextEditor): void {
        const session = this.session();
        if (session.isRunning && isOurs(document) && !document.isClosed) {
            const { client } = session;
            void client.sendNotification('fimble/cursor', {
                uri: client.code2ProtocolConverter.asUri(document.uri),
                position: client.code2ProtocolConverter.asPosition(selection.active),
            });
        }
    }
}

function offerOf(item: vscode.InlineCompletionItem, position: vscode.Position): Offer[] {
    const id: unknown = item.command?.arguments?.[0];
    const { insertText, range } = item;
    if (typeof id !== 'string' || typeof insertText !== 'string') {
        return [];
    }
    return [{ id, text: insertText, start: range?.start ?? position }];
}
