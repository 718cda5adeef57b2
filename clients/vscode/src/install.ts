/** Offers to install the server, by a command that is shown and confirmed first. */

import { readdirSync } from 'node:fs';
import * as path from 'node:path';

import * as vscode from 'vscode';

import { findProgram, type Missing } from './server/find';
import { installations, type Installation } from './server/installations';
import { runInstaller } from './server/installer';
import { surroundings } from './server/surroundings';

const TITLE = 'Install fimble';

/** `onMissing` of the session: one message, with what can be done. */
export async function offerInstallation(missing: Missing): Promise<void> {
    const actions = missing.installable ? ['Install …', 'Open the Settings'] : ['Open the Settings'];
    const chosen = await vscode.window.showWarningMessage(`fimble: ${missing.problem}`, ...actions);
    if (chosen === 'Install …') {
        await vscode.commands.executeCommand('fimble.installServer');
    } else if (chosen !== undefined) {
        await vscode.commands.executeCommand('fimble.openSettings');
    }
}

/** `fimble.installServer`; gives whether there is a new server. */
export async function install(extension: vscode.Uri, log: vscode.LogOutputChannel): Promise<boolean> {
    const wheel = bundledWheel(extension);
    if (wheel === undefined) {
        void vscode.window.showErrorMessage(
            'fimble: this build of the extension brings no server. Install it by its README.',
        );
        return false;
    }
    const around = surroundings();
    const ways = installations((name) => findProgram(around, name), wheel, around.windows);
    if (ways.length === 0) {
        void vscode.window.showErrorMessage(
            'fimble: uv, pipx or Python 3.10 is needed for an installation; none was found on PATH.',
        );
        return false;
    }
    const way = await choose(ways);
    return way !== undefined && (await confirm(way)) && (await run(way, log));
}

function bundledWheel(extension: vscode.Uri): string | undefined {
    const folder = path.join(extension.fsPath, 'dist', 'server');
    try {
        const name = readdirSync(folder).find((each) => each.endsWith('.whl'));
        return name === undefined ? undefined : path.join(folder, name);
    } catch {
        return undefined;
    }
}

async function choose(ways: readonly Installation[]): Promise<Installation | undefined> {
    const items = ways.map((way) => ({ label: way.label, detail: way.shown, way }));
    const chosen = await vscode.window.showQuickPick(items, {
        title: TITLE,
        placeHolder: 'How to install the server. The next step asks once more.',
    });
    return chosen?.way;
}

async function confirm({ shown }: Installation): Promise<boolean> {
    const chosen = await vscode.window.showInformationMessage(
        'This command is run. It installs the server and downloads what it depends on from PyPI.',
        { modal: true, detail: shown },
        'Run It',
    );
    return chosen === 'Run It';
}

/** Runs the command: its newest line is seen meanwhile, all of them are in the log, and it can be stopped. */
async function run(way: Installation, log: vscode.LogOutputChannel): Promise<boolean> {
    log.info(`running ${way.shown}`);
    const location = vscode.ProgressLocation.Notification;
    const problem = await vscode.window.withProgress(
        { location, title: 'fimble: installing the server', cancellable: true },
        (progress, token) => {
            const { ended, stop } = runInstaller(way.command, (line) => {
                log.info(line);
                progress.report({ message: line });
            });
            token.onCancellationRequested(stop);
            return ended;
        },
    );
    if (problem !== undefined) {
        void tellFailure(problem);
    }
    return problem === undefined;
}

/** One message with the cause, and what can be done. */
async function tellFailure(cause: string): Promise<void> {
    const actions: Record<string, string> = {
        'Show the Log': 'fimble.showLog',
        'Try Again …': 'fimble.installServer',
    };
    const chosen = await vscode.window.showErrorMessage(
        `fimble: the server was not installed. ${cause} The log has all that was said; ` +
            'try again, or in another way.',
        ...Object.keys(actions),
    );
    const command = chosen === undefined ? undefined : actions[chosen];
    if (command !== undefined) {
        await vscode.commands.executeCommand(command);
    }
}
