/** The session with the server: found, started, restarted with growing pauses, ended for good. */

import * as vscode from 'vscode';
import {
    CloseAction,
    ErrorAction,
    LanguageClient,
    type LanguageClientOptions,
    type Middleware,
    RevealOutputChannelOn,
    type StaticFeature,
} from 'vscode-languageclient/node';

import { SELECTOR } from '../documents';
import { Backoff } from './backoff';
import { type Found, findServer, type Missing } from './find';
import { type ServerProcess, startServer } from './process';
import type { Shown, Status } from './status';
import { surroundings } from './surroundings';

/** What is said to a user who asks for something while there is no server. */
export class NotRunning extends Error {
    constructor() {
        super('The fimble server is not running. Look at its state in the status bar.');
    }
}

/** An edit’s instruction is asked for here, its change shown, a suggestion that grew asked for again. */
const EXPERIMENTAL: StaticFeature = {
    fillClientCapabilities(capabilities) {
        capabilities.experimental = {
            fimble: { promptForInstruction: true, previewEdits: true, suggestionGrew: true },
        };
    },
    initialize: () => undefined,
    getState: () => ({ kind: 'static' }),
    clear: () => undefined,
};

export class Session implements vscode.Disposable {
    private readonly shownChanged = new vscode.EventEmitter<Shown>();
    private readonly started = new vscode.EventEmitter<LanguageClient>();
    private readonly backoff = new Backoff();
    private running: LanguageClient | undefined;
    private process: ServerProcess | undefined;
    private waiting: NodeJS.Timeout | undefined;
    private startedAt = 0;
    /** What is under way, one after another. */
    private work: Promise<void> = Promise.resolve();
    private disposed = false;

    readonly onDidChange = this.shownChanged.event;
    /** A new connection, to which listeners can be added. */
    readonly onDidStart = this.started.event;
    shown: Shown = { state: 'stopped', message: '' };

    constructor(
        private readonly log: vscode.LogOutputChannel,
        private readonly middleware: Middleware,
        private readonly onMissing: (missing: Missing) => void,
        private readonly onFailure: (cause: string) => void,
    ) {}

    /** The connection. Throws NotRunning where there is none. */
    get client(): LanguageClient {
        if (this.running === undefined) {
            throw new NotRunning();
        }
        return this.running;
    }

    get isRunning(): boolean {
        return this.running !== undefined;
    }

    /** Starts the server, after ending the one that runs. */
    restart(): Promise<void> {
        this.backoff.reset();
        return this.inTurn(async () => {
            await this.end();
            await this.begin();
        });
    }

    /** Ends the server for good; resolves when its process has ended. */
    async stop(): Promise<void> {
        this.disposed = true;
        await this.inTurn(() => this.end());
    }

    dispose(): void {
        void this.stop();
        this.shownChanged.dispose();
        this.started.dispose();
    }

    private inTurn(step: () => Promise<void>): Promise<void> {
        clearTimeout(this.waiting);
        this.work = this.work.then(step).catch((error: unknown) => {
            this.log.error(String(error));
        });
        return this.work;
    }

    private async begin(): Promise<void> {
        const found = findServer(surroundings());
        if ('problem' in found) {
            this.show({ state: 'missing', message: found.problem });
            this.onMissing(found);
            return;
        }
        this.log.info(`starting ${found.command} serve (found through ${found.where})`);
        this.show({ state: 'starting', message: '', model: '', provider: '', budget: null, remote: '' });
        this.startedAt = Date.now();
        const client = this.connection(found);
        try {
            await client.start();
        } catch (error) {
            await this.failed(error instanceof Error ? error.message : String(error));
            return;
        }
        this.running = client;
        await this.setRunning(true);
        this.started.fire(client);
    }

    private connection(found: Found): LanguageClient {
        const options: LanguageClientOptions = {
            documentSelector: SELECTOR,
            outputChannel: this.log,
            revealOutputChannelOn: RevealOutputChannelOn.Never,
            initializationFailedHandler: () => false,
            middleware: this.middleware,
            errorHandler: {
                error: () => ({ action: ErrorAction.Continue, handled: true }),
                closed: () => {
                    this.lost(client);
                    return { action: CloseAction.DoNotRestart, handled: true };
                },
            },
        };
        const client: LanguageClient = new LanguageClient(
            'fimble',
            'fimble',
            async () => {
                this.process = await startServer(found.command);
                return { process: this.process.child, detached: false };
            },
            options,
        );
        client.registerFeature(EXPERIMENTAL);
        client.onNotification('fimble/status', (status: Status) => {
            this.show(status);
        });
        return client;
    }

    /** The connection of a server that ran is gone, and nobody wanted that. */
    private lost(client: LanguageClient): void {
        if (this.running !== client) {
            return; // it never ran: `begin` tells of it
        }
        this.running = undefined;
        void this.inTurn(() => this.failed('It ended unexpectedly.'));
    }

    private async failed(what: string): Promise<void> {
        await this.setRunning(false);
        await this.process?.reap();
        const cause = this.process?.cause || what;
        this.process = undefined;
        this.log.error(`the server failed: ${cause}`);
        const wait = this.backoff.next(Date.now() - this.startedAt);
        if (wait === undefined || this.disposed) {
            this.show({ state: 'stopped', message: cause });
            this.onFailure(cause);
            return;
        }
        this.show({ state: 'stopped', message: `${cause} It is started again in ${wait / 1000} s.` });
        this.waiting = setTimeout(() => void this.inTurn(() => this.begin()), wait);
    }

    private async end(): Promise<void> {
        const client = this.running;
        this.running = undefined;
        await this.setRunning(false);
        // A server that hangs is ended by its process.
        await client?.stop().catch((error: unknown) => this.log.warn(String(error)));
        await this.process?.reap();
        this.process = undefined;
    }

    private async setRunning(value: boolean): Promise<void> {
        await vscode.commands.executeCommand('setContext', 'fimble.running', value);
    }

    private show(shown: Shown): void {
        this.shown = shown;
        if (!this.disposed) {
            this.shownChanged.fire(shown);
        }
    }
}
