/** What the search for the server looks at, from the editor and the machine. */

import { accessSync, constants, statSync } from 'node:fs';
import { homedir } from 'node:os';
import * as path from 'node:path';

import * as vscode from 'vscode';

import type { Surroundings } from './find';

export function surroundings(): Surroundings {
    const folders = vscode.workspace.workspaceFolders ?? [];
    const setting = vscode.workspace.getConfiguration('fimble.client').get<string>('serverPath', '');
    return {
        setting: setting.trim(),
        searchPath: process.env['PATH'] ?? '',
        folders: folders.filter(({ uri }) => uri.scheme === 'file').map(({ uri }) => uri.fsPath),
        trusted: vscode.workspace.isTrusted,
        windows: process.platform === 'win32',
        path,
        home: homedir(),
        isFile,
    };
}

function isFile(file: string): boolean {
    try {
        accessSync(file, constants.X_OK);
        return statSync(file).isFile();
    } catch {
        return false;
    }
}
