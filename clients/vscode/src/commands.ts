/** Commands that need no more than a line each; errors become messages. */

import * as vscode from 'vscode';

import type { Chat } from './chat/view';
import type { Completions } from './completions';
import { type EditData, editSelection, type Place, previewEdit, runCodeAction } from './edits';
import type { Preview } from './preview';
import { type Reports, showDoctor, showPrompt } from './reports';
import type { Session } from './server/session';
import { showStatusMenu, toggleLanguage } from './statusBar';
import { ifTrusted } from './trust';

export interface Parts {
    readonly session: Session;
    readonly chat: Chat;
    readonly completions: Completions;
    readonly preview: Preview;
    readonly reports: Reports;
    readonly log: vscode.LogOutputChannel;
}

const SNOOZES = [
    { label: '10 minutes', minutes: 10 },
    { label: '30 minutes', minutes: 30 },
    { label: '1 hour', minutes: 60 },
    { label: '8 hours', minutes: 480 },
];

type Run = (...args: never[]) => unknown;

export function registerCommands(parts: Parts): vscode.Disposable[] {
    const { session, chat, completions, preview, reports, log } = parts;
    const editorCommand = 'editor.action.inlineSuggest';
    const commands: Record<string, Run> = {
        acceptWord: () => completions.acceptPart(`${editorCommand}.acceptNextWord`),
        acceptLine: () => completions.acceptPart(`${editorCommand}.acceptNextLine`),
        suggest: () => vscode.commands.executeCommand(`${editorCommand}.trigger`),
        statusMenu: () => showStatusMenu(session),
        toggleLanguage,
        toggleSuggestions,
        snoozeSuggestions: () => snooze(session),
        wake: () => tellSnooze(session, 0),
        editSelection: ifTrusted(() => editSelection(session, preview)),
        // The server’s code actions have these commands; they are no entries of a menu.
        promptEdit: ifTrusted((place: Place) => editSelection(session, preview, place)),
        previewEdit: ifTrusted((data: EditData) => previewEdit(session, preview, data)),
        acceptEdit: () => preview.accept(),
        discardEdit: () => preview.discard(),
        documentCode: ifTrusted(() => runCodeAction('refactor.rewrite.document', 'first')),
        simplifyCode: ifTrusted(() => runCodeAction('refactor.rewrite.simplify', 'first')),
        writeTests: ifTrusted(() => runCodeAction('source.tests', 'first')),
        rewriteCode: ifTrusted(() => runCodeAction('refactor.rewrite', 'never')),
        explainSelection: ifTrusted(() => chat.explain()),
        openChat: ifTrusted(() => chat.open()),
        showPromptHere: () => showPrompt(session, reports),
        doctor: () => showDoctor(reports),
        showLog: () => {
            log.show();
        },
        restartServer: () => session.restart(),
        openSettings: () =>
            vscode.commands.executeCommand('workbench.action.openSettings', '@ext:fimble.fimble'),
        openWalkthrough: () =>
            vscode.commands.executeCommand('workbench.action.openWalkthrough', 'fimble.fimble#start'),
    };
    return Object.entries(commands).map(([name, run]) => register(`fimble.${name}`, run));
}

/** Registers a command whose failure is shown to the user in a sentence. */
export function register(id: string, run: Run): vscode.Disposable {
    return vscode.commands.registerCommand(id, async (...args: never[]) => {
        try {
            await run(...args);
        } catch (error) {
            tellError(error);
        }
    });
}

export function tellError(error: unknown): void {
    if (error instanceof vscode.CancellationError) {
        return;
    }
    const message = error instanceof Error ? error.message : String(error);
    void vscode.window.showErrorMessage(`fimble: ${message}`);
}

async function snooze(session: Session): Promise<void> {
    const chosen = await vscode.window.showQuickPick(SNOOZES, {
        title: 'No suggestions for …',
    });
    if (chosen !== undefined) {
        await tellSnooze(session, chosen.minutes);
    }
}

async function tellSnooze(session: Session, minutes: number): Promise<void> {
    await session.client.sendRequest('workspace/executeCommand', {
        command: 'fimble.snooze',
        arguments: [minutes],
    });
}

async function toggleSuggestions(): Promise<void> {
    const settings = vscode.workspace.getConfiguration('fimble.completion');
    const enabled = settings.get('enabled', true);
    await settings.update('enabled', !enabled, vscode.ConfigurationTarget.Global);
}
