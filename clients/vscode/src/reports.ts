/** Texts to be read, not kept: shown as documents that cannot be edited. */

import { spawn } from 'node:child_process';
import { homedir } from 'node:os';

import * as vscode from 'vscode';

import { findServer } from './server/find';
import type { Session } from './server/session';
import { surroundings } from './server/surroundings';

export const REPORT_SCHEME = 'fimble-report';

export class Reports implements vscode.TextDocumentContentProvider {
    private readonly texts = new Map<string, string>();
    private readonly changed = new vscode.EventEmitter<vscode.Uri>();
    readonly onDidChange = this.changed.event;

    provideTextDocumentContent(uri: vscode.Uri): string {
        return this.texts.get(uri.path) ?? '';
    }

    async show(name: string, language: string, text: string): Promise<void> {
        const uri = vscode.Uri.from({ scheme: REPORT_SCHEME, path: `/${name}` });
        this.texts.set(uri.path, text);
        this.changed.fire(uri);
        const document = await vscode.workspace.openTextDocument(uri);
        await vscode.languages.setTextDocumentLanguage(document, language);
        await vscode.window.showTextDocument(document, { preview: true });
    }
}

interface PromptAnswer {
    readonly refusal: { readonly name: string; readonly reason: string } | null;
    readonly sections: readonly {
        readonly kind: string;
        readonly path: string;
        readonly reason: string;
        readonly tokens: number;
        readonly text: string;
    }[];
    readonly left_out: readonly { readonly path: string; readonly reason: string }[];
    readonly budget_tokens?: number;
    readonly error?: string;
}

/** `fimble.showPromptHere`: what the prompt for the cursor is made of. */
export async function showPrompt(session: Session, reports: Reports): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined) {
        void vscode.window.showInformationMessage('fimble: no document is open.');
        return;
    }
    const { client } = session;
    const answer = await client.sendRequest<PromptAnswer>('workspace/executeCommand', {
        command: 'fimble.showPrompt',
        arguments: [
            client.code2ProtocolConverter.asUri(editor.document.uri),
            client.code2ProtocolConverter.asPosition(editor.selection.active),
        ],
    });
    await reports.show('prompt.md', 'markdown', promptText(answer));
}

export function promptText(answer: PromptAnswer): string {
    const lines = ['# What the prompt for this place is made of', ''];
    if (answer.refusal !== null) {
        lines.push(`No suggestion here: ${answer.refusal.reason} (${answer.refusal.name})`, '');
    }
    if (answer.error !== undefined) {
        lines.push(answer.error, '');
    }
    if (answer.budget_tokens !== undefined) {
        lines.push(`Room for ${answer.budget_tokens} tokens.`, '');
    }
    for (const { kind, path, reason, tokens, text } of answer.sections) {
        const about = [kind, path].filter(Boolean).join(' ');
        lines.push(`## ${about}: ${reason} (${tokens} tokens)`, '', ...indented(text), '');
    }
    if (answer.left_out.length > 0) {
        lines.push('## Left out', '');
        lines.push(...answer.left_out.map(({ path, reason }) => `- ${path}: ${reason}`), '');
    }
    return lines.join('\n');
}

/** Code by indentation: a fence could end within the text. */
function indented(text: string): string[] {
    return text.split('\n').map((line) => `    ${line}`);
}

/** `fimble.doctor`: what `fimble doctor` says. */
export async function showDoctor(reports: Reports): Promise<void> {
    const found = findServer(surroundings());
    if ('problem' in found) {
        await reports.show('doctor.txt', 'plaintext', `${found.problem}\n`);
        return;
    }
    const text = await vscode.window.withProgress(
        { location: vscode.ProgressLocation.Window, title: 'fimble: the doctor is looking' },
        () => output(found.command, ['doctor']),
    );
    await reports.show('doctor.txt', 'plaintext', text);
}

/** What a program prints, or why it could not be run. */
function output(command: string, args: readonly string[]): Promise<string> {
    return new Promise((resolve) => {
        const child = spawn(command, args, {
            cwd: homedir(),
            env: { ...process.env, NO_COLOR: '1', PYTHONIOENCODING: 'utf-8' },
            stdio: ['ignore', 'pipe', 'pipe'],
            windowsHide: true,
        });
        let text = '';
        const hear = (data: Buffer): void => {
            text += data.toString('utf8');
        };
        child.stdout.on('data', hear);
        child.stderr.on('data', hear);
        child.once('error', (error) => resolve(`${command} cannot be run: ${error.message}\n`));
        child.once('close', () => resolve(text));
    });
}
