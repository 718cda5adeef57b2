/** Edits: by an instruction that is asked for and shown as a diff, or by the server’s own tasks. */

import * as vscode from 'vscode';
import type { CodeAction, Middleware } from 'vscode-languageclient/node';

import { changeOf } from './changes';
import { lastEditor } from './documents';
import type { Preview } from './preview';
import type { Session } from './server/session';

/** What the server’s action `fimble.promptEdit` brings along: a place, as the protocol has it. */
export interface Place {
    readonly uri: string;
    readonly range: {
        readonly start: { readonly line: number; readonly character: number };
        readonly end: { readonly line: number; readonly character: number };
    };
}

/** What an edit is made by: the server’s, but for an instruction that was asked for here. */
export interface EditData extends Place {
    readonly version: number;
    readonly task: string;
    readonly instruction?: string;
}

/** `fimble.editSelection`, and with a place `fimble.promptEdit`. */
export async function editSelection(session: Session, preview: Preview, given?: Place): Promise<void> {
    const place = given ?? selectedPlace(session);
    const instruction = await vscode.window.showInputBox({
        title: 'Edit the selection',
        prompt: 'What should change?',
        placeHolder: 'return 0 for an empty list',
    });
    if (instruction === undefined || instruction.trim() === '') {
        return;
    }
    const uri = session.client.protocol2CodeConverter.asUri(place.uri);
    const { version } = await vscode.workspace.openTextDocument(uri);
    await previewEdit(session, preview, { ...place, version, task: 'custom', instruction });
}

/** `fimble.previewEdit`, the command of the server’s code actions: makes an edit and shows it. */
export async function previewEdit(
    { client }: Session,
    preview: Preview,
    data: EditData,
): Promise<void> {
    const action = await vscode.window.withProgress(
        { location: vscode.ProgressLocation.Notification, title: 'fimble: editing …', cancellable: true },
        (_, token) =>
            client.sendRequest<CodeAction>('codeAction/resolve', { title: 'Edit', data }, token),
    );
    if (action.edit !== undefined) {
        await preview.show(await changeOf(client, action.edit), data.instruction);
    }
}

/** What is selected in the active editor, or where its cursor is. */
export function selectedPlace({ client }: Session): Place {
    const { document, selection } = lastEditor();
    const convert = client.code2ProtocolConverter;
    return { uri: convert.asUri(document.uri), range: convert.asRange(selection) };
}

/** Makes the edit of one kind of the server’s code actions, or shows them all for a choice. */
export async function runCodeAction(kind: string, apply: 'first' | 'never'): Promise<void> {
    await vscode.commands.executeCommand('editor.action.codeAction', { kind, apply });
}

/** Makes the edit of an action that was chosen and is not to be shown first; tells in the server’s words why there is none. */
export function madeOnChoice(
    session: () => Session,
    tellError: (error: unknown) => void,
): Pick<Middleware, 'resolveCodeAction'> {
    return {
        resolveCodeAction: async (item, token) => {
            const { client } = session();
            try {
                const given = client.code2ProtocolConverter.asCodeActionSync(item);
                const made = await client.sendRequest<CodeAction>('codeAction/resolve', given, token);
                return await client.protocol2CodeConverter.asCodeAction(made, token);
            } catch (error) {
                if (!token.isCancellationRequested) {
                    tellError(error);
                }
                return item;
            }
        },
    };
}
