/** The chat in the side bar: carries questions to the server and answers to the page. */

import { randomUUID } from 'node:crypto';

import * as vscode from 'vscode';
import { type CancellationToken, ProgressType } from 'vscode-languageclient/node';

import type { Preview } from '../preview';
import type { Session } from '../server/session';
import { Conversations } from './conversations';
import type { Block, Completion, Exchange, ToExtension, ToPage, Used } from './messages';
import { pageOf } from './page';
import { apply, attachedSelection, insert } from './place';
import type { Store } from './store';

export const CHAT_VIEW = 'fimble.chat';

const STREAMED = new ProgressType<{ text: string }>();

interface Answer {
    readonly text: string;
    readonly turn: number;
    readonly blocks: readonly Block[];
    readonly context: readonly Used[];
    readonly left_out: readonly { readonly path: string; readonly reason: string }[];
}

type Arranging = Extract<ToExtension, { type: 'new' | 'choose' | 'attach' | 'detach' }>;

export class Chat implements vscode.WebviewViewProvider {
    private readonly conversations = new Conversations(() => randomUUID());
    private readonly restored: Promise<void>;
    private view: vscode.WebviewView | undefined;
    private stopping: vscode.CancellationTokenSource | undefined;
    /** The page is not there yet, and is to have the focus when it is. */
    private focusWanted = false;

    constructor(
        private readonly session: Session,
        private readonly preview: Preview,
        private readonly store: Store,
        private readonly extension: vscode.Uri,
        private readonly tellError: (error: unknown) => void,
    ) {
        this.restored = store.load().then((kept) => {
            this.conversations.restore(kept);
        });
    }

    resolveWebviewView(view: vscode.WebviewView): void {
        this.view = view;
        view.webview.options = {
            enableScripts: true,
            localResourceRoots: ['dist', 'media'].map((name) =>
                vscode.Uri.joinPath(this.extension, name),
            ),
        };
        view.webview.onDidReceiveMessage((message: ToExtension) => {
            this.heard(message).catch(this.tellError);
        });
        view.onDidDispose(() => {
            this.view = undefined;
        });
        view.webview.html = pageOf(view.webview, this.extension);
    }

    /** `fimble.openChat` */
    async open(): Promise<void> {
        this.focusWanted = this.view === undefined;
        await vscode.commands.executeCommand(`${CHAT_VIEW}.focus`);
        this.tell({ type: 'focus' });
    }

    /** `fimble.explainSelection` */
    async explain(): Promise<void> {
        if (this.stopping !== undefined) {
            throw new Error('The chat is answering. Stop that first.');
        }
        await this.restored;
        const selection = attachedSelection(this.session);
        this.conversations.begin();
        this.conversations.attached = [selection];
        await this.open();
        await this.ask('/explain');
    }

    private async heard(message: ToExtension): Promise<void> {
        switch (message.type) {
            case 'ready':
                await this.pageIsThere();
                return;
            case 'send':
                await this.ask(message.text);
                return;
            case 'stop':
                this.stopping?.cancel();
                return;
            case 'delete':
                await this.remove();
                return;
            case 'copy':
                await vscode.env.clipboard.writeText(message.text);
                return;
            case 'insert':
                await insert(message.text);
                return;
            case 'apply':
                await this.apply(message.exchange, message.block);
                return;
            case 'complete':
                await this.complete(message.request, message.text, message.character);
                return;
            default:
                this.arrange(message);
        }
    }

    private async pageIsThere(): Promise<void> {
        await this.restored;
        this.showState();
        if (this.focusWanted) {
            this.focusWanted = false;
            this.tell({ type: 'focus' });
        }
    }

    /** What changes no more than what the page shows. */
    private arrange(message: Arranging): void {
        // While an answer comes in, the page shows where it goes.
        const busy = this.stopping !== undefined;
        const { attached } = this.conversations;
        if (message.type === 'attach') {
            this.conversations.attached = [...attached, attachedSelection(this.session)];
        } else if (message.type === 'detach') {
            this.conversations.attached = attached.filter((_, index) => index !== message.index);
        } else if (!busy && message.type === 'new') {
            this.conversations.begin();
        } else if (!busy && message.type === 'choose') {
            this.conversations.choose(message.id);
        }
        this.showState();
    }

    private async apply(exchange: number, index: number): Promise<void> {
        const block = this.conversations.exchange(exchange)?.blocks[index];
        if (block !== undefined) {
            await apply(this.session.client, this.preview, block);
        }
    }

    /** Deletes the current conversation, here and at the server. */
    private async remove(): Promise<void> {
        const { id: conversation } = this.conversations;
        const chosen = await vscode.window.showWarningMessage(
            'Delete this conversation?',
            { modal: true },
            'Delete',
        );
        if (chosen === undefined || this.stopping !== undefined) {
            return;
        }
        this.conversations.choose(conversation);
        this.conversations.remove();
        this.showState();
        await this.store.save(this.conversations.kept());
        if (this.session.isRunning) {
            await this.request('fimble/chat', { message: '/clear', conversation });
        }
    }

    private async ask(question: string): Promise<void> {
        if (question.trim() === '' || this.stopping !== undefined) {
            return;
        }
        this.attachMentioned(question);
        const { id: conversation, history } = this.conversations;
        const { exchange, attached } = this.conversations.ask(question);
        const stopping = new vscode.CancellationTokenSource();
        this.stopping = stopping;
        this.showState();
        const attachments = attached.map(({ attachment }) => attachment);
        const params = { message: question, conversation, history, attachments };
        try {
            this.finish(exchange, await this.streamed(exchange, params, stopping.token));
        } catch (error) {
            const cause = error instanceof Error ? error.message : String(error);
            exchange.problem = stopping.token.isCancellationRequested ? 'Stopped.' : cause;
        } finally {
            stopping.dispose();
            this.stopping = undefined;
            exchange.state = 'done';
            this.showState();
            await this.store.save(this.conversations.kept());
        }
    }

    /** The server knows what `#selection` means, but not what is selected. */
    private attachMentioned(question: string): void {
        const { attached } = this.conversations;
        const isThere = attached.some(({ attachment }) => attachment['kind'] === 'selection');
        if (/(^|\s)#selection\b/.test(question) && !isThere && this.session.isRunning) {
            this.conversations.attached = [...attached, attachedSelection(this.session)];
        }
    }

    private async streamed(exchange: Exchange, params: object, token: CancellationToken): Promise<Answer> {
        const partialResultToken = randomUUID();
        const streaming = this.session.client.onProgress(STREAMED, partialResultToken, ({ text }) => {
            exchange.answer += text;
            this.tell({ type: 'piece', text });
        });
        try {
            return await this.request('fimble/chat', { ...params, partialResultToken }, token);
        } finally {
            streaming.dispose();
        }
    }

    private finish(exchange: Exchange, answer: Answer): void {
        if (answer.turn === 0 && answer.text === '') {
            this.conversations.clear(); // the server has, by /clear
            return;
        }
        exchange.answer = answer.text;
        exchange.turn = answer.turn;
        exchange.blocks = answer.blocks;
        exchange.used = answer.context;
        exchange.leftOut = answer.left_out.map(({ path, reason }) => [path, reason].filter(Boolean).join(': '));
    }

    private request<R>(method: string, params: object, token?: CancellationToken): Promise<R> {
        const { client } = this.session;
        // A token that is undefined would be sent as a second parameter.
        return token === undefined
            ? client.sendRequest<R>(method, params)
            : client.sendRequest<R>(method, params, token);
    }

    private async complete(request: number, text: string, character: number): Promise<void> {
        if (this.session.isRunning) {
            const found = await this.request<Completion>('fimble/chatComplete', { text, character });
            this.tell({ type: 'completion', request, ...found });
        }
    }

    private showState(): void {
        const state = this.conversations.state(this.stopping !== undefined);
        this.tell({ type: 'state', state });
    }

    private tell(message: ToPage): void {
        void this.view?.webview.postMessage(message);
    }
}
