/** What a workspace that is not trusted gets: completions, and nothing that acts for it. */

import * as vscode from 'vscode';
import type { Middleware } from 'vscode-languageclient/node';

export const codeActionsOnlyIfTrusted: Pick<Middleware, 'provideCodeActions'> = {
    provideCodeActions: (document, range, context, token, next) =>
        vscode.workspace.isTrusted ? next(document, range, context, token) : [],
};
