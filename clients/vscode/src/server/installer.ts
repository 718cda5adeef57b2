/** A run of the program that installs the server. Knows no editor. */

import { spawn } from 'node:child_process';
import { homedir } from 'node:os';
import { createInterface } from 'node:readline';

export interface Installing {
    /** Resolves when it has ended: to why nothing was installed, in a sentence, or to nothing. */
    readonly ended: Promise<string | undefined>;
    /** Ends it early. */
    readonly stop: () => void;
}

/** Runs `command` in a folder that no workspace brought along; `onLine` gets each line it says. */
export function runInstaller(
    command: readonly string[],
    onLine: (line: string) => void,
): Installing {
    const [program = '', ...args] = command;
    const child = spawn(program, args, {
        cwd: homedir(),
        stdio: ['ignore', 'pipe', 'pipe'],
        windowsHide: true,
    });
    const said: string[] = [];
    for (const input of [child.stdout, child.stderr]) {
        createInterface({ input }).on('line', (line) => {
            const text = line.trim();
            if (text !== '') {
                said.push(text);
                onLine(text);
            }
        });
    }
    const ended = new Promise<string | undefined>((resolve) => {
        child.once('error', ({ message }) => {
            resolve(`${program} could not be run: ${message}.`);
        });
        child.once('close', (code, signal) => {
            const how = signal === null ? `exit code ${code ?? '?'}` : `signal ${signal}`;
            resolve(code === 0 ? undefined : `${[causeIn(said), how].filter(Boolean).join(' · ')}.`);
        });
    });
    return { ended, stop: () => child.kill() };
}

/** Installers end with advice; what went wrong is in the first line that calls itself an error. */
function causeIn(said: readonly string[]): string | undefined {
    return said.find((line) => /^(error|fatal)\b/i.test(line)) ?? said.at(-1);
}
