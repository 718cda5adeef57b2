/** The extension: its parts put together. Each is in the file of its name. */

import * as vscode from 'vscode';
import type { Middleware } from 'vscode-languageclient/node';

import { Store } from './chat/store';
import { Chat, CHAT_VIEW } from './chat/view';
import { register, registerCommands, tellError } from './commands';
import { Completions } from './completions';
import { madeOnChoice } from './edits';
import { install, offerInstallation } from './install';
import { Preview, PREVIEW_SCHEME } from './preview';
import { REPORT_SCHEME, Reports } from './reports';
import { Session } from './server/session';
import { StatusBar } from './statusBar';
import { codeActionsOnlyIfTrusted } from './trust';

let session: Session | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
    const log = vscode.window.createOutputChannel('fimble', { log: true });
    const reports = new Reports();
    const preview = new Preview();
    const completions = new Completions(() => running);
    const middleware: Middleware = {
        ...completions.middleware,
        ...codeActionsOnlyIfTrusted,
        ...madeOnChoice(() => running, tellError),
    };
    const restart = (): Promise<void> => running.restart();
    const running = new Session(
        log,
        middleware,
        (missing) => void offerInstallation(missing),
        (cause) => void tellFailure(cause),
    );
    session = running;
    const store = new Store(context.storageUri?.fsPath, (problem) => {
        log.warn(problem);
    });
    const chat = new Chat(running, preview, store, context.extensionUri, tellError);
    context.subscriptions.push(
        log,
        running,
        completions,
        preview,
        new StatusBar(running),
        vscode.window.registerWebviewViewProvider(CHAT_VIEW, chat, {
            webviewOptions: { retainContextWhenHidden: true },
        }),
        vscode.workspace.registerTextDocumentContentProvider(REPORT_SCHEME, reports),
        vscode.workspace.registerTextDocumentContentProvider(PREVIEW_SCHEME, preview),
        running.onDidStart((client) => {
            completions.listen(client);
        }),
        vscode.workspace.onDidGrantWorkspaceTrust(restart),
        vscode.workspace.onDidChangeConfiguration((event) => {
            if (event.affectsConfiguration('fimble.client.serverPath')) {
                void restart();
            }
        }),
        ...registerCommands({ session: running, chat, completions, preview, reports, log }),
        register('fimble.installServer', async () => {
            if (await install(context.extensionUri, log)) {
                await restart();
            }
        }),
    );
    await running.restart();
}

/** The editor waits for this when the window closes: no process is left behind. */
export async function deactivate(): Promise<void> {
    await session?.stop();
}

/** One message with the cause, and ways to find out more. */
async function tellFailure(cause: string): Promise<void> {
    const actions: Record<string, string> = {
        'Show the Log': 'fimble.showLog',
        'Run the Doctor': 'fimble.doctor',
        Restart: 'fimble.restartServer',
    };
    const chosen = await vscode.window.showErrorMessage(
        `fimble: the server could not be kept running. ${cause}`,
        ...Object.keys(actions),
    );
    const command = chosen === undefined ? undefined : actions[chosen];
    if (command !== undefined) {
        await vscode.commands.executeCommand(command);
    }
}
