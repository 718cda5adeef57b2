/** What a workspace that is not trusted gets: completions, and nothing that acts for it. */

import * as vscode from 'vscode';
import type { Middleware } from 'vscode-languageclient/node';

export const codeActionsOnlyIfTrusted: Pick<Middleware, 'provideCodeActions'> = {
    provideCodeActions: (document, range, context, token, next) =>
        vscode.workspace.isTrusted ? next(document, range, context, token) : [],
};

/** Runs what asks for trust; tells a user who gave none. */
export function ifTrusted<Args extends unknown[]>(
    run: (...args: Args) => Promise<void>,
): (...args: Args) => Promise<void> {
    return async (...args) => {
        if (vscode.workspace.isTrusted) {
            await run(...args);
        } else {
            void vscode.window.showInformationMessage(
                'fimble: edits and chat need a trusted workspace. Completions work without.',
            );
        }
    };
}
