/** The status bar: what the server is doing, and a menu of what can be done about it. */

import * as vscode from 'vscode';

import { isOurs } from './documents';
import type { Session } from './server/session';
import { isTrouble, type Shown, statusLines, statusText } from './server/status';

export class StatusBar implements vscode.Disposable {
    private readonly item = vscode.window.createStatusBarItem(
        'fimble.status',
        vscode.StatusBarAlignment.Right,
        90,
    );
    private readonly listening: vscode.Disposable[];

    constructor(session: Session) {
        this.item.name = 'fimble';
        this.item.command = 'fimble.statusMenu';
        this.listening = [
            session.onDidChange((shown) => {
                this.update(shown);
            }),
            vscode.window.onDidChangeActiveTextEditor(() => {
                this.update(session.shown);
            }),
            vscode.workspace.onDidChangeConfiguration((event) => {
                if (event.affectsConfiguration('fimble')) {
                    this.update(session.shown);
                }
            }),
        ];
        this.update(session.shown);
        this.item.show();
    }

    dispose(): void {
        this.item.dispose();
        this.listening.forEach((each) => void each.dispose());
    }

    private update(shown: Shown): void {
        const lines = statusLines(shown);
        const language = activeLanguage();
        const silent = language !== undefined && isLanguageOff(language);
        if (silent) {
            lines.push(`no suggestions in ${language}: it is in completion.disabledLanguages`);
        }
        this.item.text = silent && shown.state === 'ready' ? '$(circle-slash) fimble' : statusText(shown);
        this.item.tooltip = lines.join('\n');
        this.item.accessibilityInformation = { label: lines.join(', '), role: 'button' };
        this.item.backgroundColor = isTrouble(shown)
            ? new vscode.ThemeColor('statusBarItem.warningBackground')
            : undefined;
    }
}

interface Choice extends vscode.QuickPickItem {
    readonly run?: () => Thenable<unknown>;
}

/** `fimble.statusMenu` */
export async function showStatusMenu(session: Session): Promise<void> {
    const [title, ...details] = statusLines(session.shown);
    const chosen = await vscode.window.showQuickPick(choices(session), {
        title: title ?? 'fimble',
        placeHolder: details.join(' · '),
    });
    await chosen?.run?.();
}

function choices(session: Session): Choice[] {
    const language = activeLanguage();
    const listed: Choice[] = [];
    if (session.isRunning) {
        const off = session.shown.state === 'disabled';
        listed.push(
            ...(off ? [command('$(bell) End the silence', 'fimble.wake')] : []),
            command('$(bell-slash) Snooze …', 'fimble.snoozeSuggestions'),
        );
    }
    if (language !== undefined) {
        const label = isLanguageOff(language)
            ? `$(check) Suggest in ${language}`
            : `$(circle-slash) Do not suggest in ${language}`;
        listed.push(command(label, 'fimble.toggleLanguage'));
    }
    if (session.isRunning && vscode.workspace.isTrusted) {
        listed.push(
            command('$(edit) Edit the selection …', 'fimble.editSelection'),
            command('$(list-tree) Show the prompt for the cursor', 'fimble.showPromptHere'),
        );
    }
    listed.push(
        { label: '', kind: vscode.QuickPickItemKind.Separator },
        command('$(pulse) Doctor: look for what is in the way', 'fimble.doctor'),
        command('$(output) Show the log', 'fimble.showLog'),
        command('$(debug-restart) Restart the server', 'fimble.restartServer'),
        command('$(settings-gear) Settings', 'fimble.openSettings'),
    );
    return listed;
}

function command(label: string, id: string): Choice {
    return { label, run: () => vscode.commands.executeCommand(id) };
}

/** `fimble.toggleLanguage`: the active document’s language, in the user’s settings. */
export async function toggleLanguage(): Promise<void> {
    const language = activeLanguage();
    if (language === undefined) {
        void vscode.window.showInformationMessage('fimble: no document is open.');
        return;
    }
    const before = disabledLanguages();
    const after = before.includes(language)
        ? before.filter((each) => each !== language)
        : [...before, language];
    await vscode.workspace
        .getConfiguration('fimble.completion')
        .update('disabledLanguages', after, vscode.ConfigurationTarget.Global);
}

function activeLanguage(): string | undefined {
    const document = vscode.window.activeTextEditor?.document;
    return document !== undefined && isOurs(document) ? document.languageId : undefined;
}

function isLanguageOff(language: string): boolean {
    return disabledLanguages().includes(language);
}

function disabledLanguages(): string[] {
    return vscode.workspace.getConfiguration('fimble.completion').get('disabledLanguages', []);
}
