/** The page of the chat: nothing in it is from elsewhere, and only its own script runs. */

import { randomBytes } from 'node:crypto';

import * as vscode from 'vscode';

export function pageOf(webview: vscode.Webview, extension: vscode.Uri): string {
    const nonce = randomBytes(16).toString('base64');
    const script = webview.asWebviewUri(vscode.Uri.joinPath(extension, 'dist', 'webview', 'main.js'));
    const style = webview.asWebviewUri(vscode.Uri.joinPath(extension, 'media', 'chat.css'));
    const policy = [
        "default-src 'none'",
        `script-src 'nonce-${nonce}'`,
        `style-src ${webview.cspSource}`,
        // What is no source of anything has to be forbidden by name.
        "base-uri 'none'",
        "form-action 'none'",
    ].join('; ');
    return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<link rel="stylesheet" href="${style.toString()}">
<title>fimble chat</title>
</head>
<body>
<header>
<select id="conversations" aria-label="Conversation"></select>
<button id="new" type="button" title="Begin a new conversation">New</button>
<button id="delete" type="button" title="Delete this conversation">Delete</button>
</header>
<main id="exchanges" aria-label="Questions and answers" tabindex="0"></main>
<div id="said" role="status" class="unseen"></div>
<form id="form">
<ul id="attachments" aria-label="Attached to the next question"></ul>
<ul id="names" role="listbox" aria-label="Names" hidden></ul>
<textarea id="message" rows="3" role="combobox" aria-label="Question" aria-autocomplete="list"
 aria-controls="names" aria-expanded="false" placeholder="Ask about your code. / has tasks, @ has files."></textarea>
<div class="buttons">
<button id="attach" type="button" title="Attach what is selected in the editor">Attach the Selection</button>
<button id="send" type="submit">Send</button>
<button id="stop" type="button" hidden>Stop</button>
</div>
</form>
<script nonce="${nonce}" src="${script.toString()}"></script>
</body>
</html>`;
}
