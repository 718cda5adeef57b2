/** Offers to install the server, by a command that is shown and confirmed first. */

import { readdirSync } from 'node:fs';
import * as path from 'node:path';

import * as vscode from 'vscode';

import { findProgram, type Missing } from './server/find';
import { installations, type Installation } from './server/installations';
import { surroundings } from './server/surroundings';

const TITLE = 'Install fimble';

/** `onMissing` of the session: one message, with what can be done. */
export async function offerInstallation(
    missing: Missing,
    extension: vscode.Uri,
    installed: () => Promise<void>,
): Promise<void> {
    const actions = missing.installable ? ['Install …', 'Open the Settings'] : ['Open the Settings'];
    const chosen = await vscode.window.showWarningMessage(`fimble: ${missing.problem}`, ...actions);
    if (chosen === 'Install …') {
        await install(extension, installed);
    } else if (chosen !== undefined) {
        await vscode.commands.executeCommand('fimble.openSettings');
    }
}

/** `fimble.installServer` */
export async function install(extension: vscode.Uri, installed: () => Promise<void>): Promise<void> {
    const wheel = bundledWheel(extension);
    if (wheel === undefined) {
        void vscode.window.showErrorMessage(
            'fimble: this build of the extension brings no server. Install it by its README.',
        );
        return;
    }
    const around = surroundings();
    const ways = installations((name) => findProgram(around, name), wheel, around.windows);
    if (ways.length === 0) {
        void vscode.window.showErrorMessage(
            'fimble: uv, pipx or Python 3.10 is needed for an installation; none was found on PATH.',
        );
        return;
    }
    const way = await choose(ways);
    if (way !== undefined && (await confirm(way))) {
        await run(way, installed);
    }
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

/** Runs the command as a task: its output is seen, and it can be stopped. */
async function run(way: Installation, installed: () => Promise<void>): Promise<void> {
    const [program, ...args] = way.command;
    if (program === undefined) {
        return;
    }
    const task = new vscode.Task(
        { type: 'process' },
        vscode.TaskScope.Workspace,
        TITLE,
        'fimble',
        new vscode.ProcessExecution(program, args),
    );
    const execution = await vscode.tasks.executeTask(task);
    const ended = vscode.tasks.onDidEndTaskProcess(async (event) => {
        if (event.execution !== execution) {
            return;
        }
        ended.dispose();
        if (event.exitCode === 0) {
            await installed();
        } else {
            void vscode.window.showErrorMessage(
                `fimble: the installation failed with exit code ${event.exitCode ?? '?'}. ` +
                    'The terminal has the reason.',
            );
        }
    });
}
