/** The server's process: what it said last, how it ended, and that it does end. */

import { type ChildProcess, spawn } from 'node:child_process';
import { homedir } from 'node:os';

const KEPT_CHARACTERS = 4000;
const PATIENCE_MS = 3000;

export class ServerProcess {
    private said = '';
    private ended = '';

    constructor(readonly child: ChildProcess) {
        child.stderr?.on('data', (data: Buffer) => {
            this.said = (this.said + data.toString('utf8')).slice(-KEPT_CHARACTERS);
        });
        child.on('exit', (code, signal) => {
            this.ended = signal === null ? `exit code ${code ?? '?'}` : `signal ${signal}`;
        });
    }

    /** Why it ended, as far as it is known: its last words and how. */
    get cause(): string {
        const lines = this.said.split(/\r?\n/).filter((line) => line.trim() !== '');
        return [lines.at(-1)?.trim(), this.ended].filter(Boolean).join(' · ');
    }

    /** Ends it if it has not come to an end by itself after a while. */
    async reap(): Promise<void> {
        const { child } = this;
        if (child.exitCode !== null || child.signalCode !== null) {
            return;
        }
        await new Promise<void>((resolve) => {
            const timer = setTimeout(() => {
                child.kill('SIGKILL');
                resolve();
            }, PATIENCE_MS);
            child.once('exit', () => {
                clearTimeout(timer);
                resolve();
            });
        });
    }
}

/**
 * Starts the server, in a folder that no workspace brought along. Rejects where the program
 * cannot be started at all.
 */
export function startServer(command: string): Promise<ServerProcess> {
    return new Promise((resolve, reject) => {
        const child = spawn(command, ['serve'], {
            cwd: homedir(),
            stdio: 'pipe',
            windowsHide: true,
        });
        child.once('error', reject);
        child.once('spawn', () => resolve(new ServerProcess(child)));
    });
}
