/** Where conversations are kept: a file in the editor’s own storage for the workspace. */

import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import * as path from 'node:path';

export class Store {
    private readonly file: string | undefined;
    /** What is being written, one after another. */
    private work: Promise<void> = Promise.resolve();

    /** Without a folder nothing is kept. `warn` is told what could not be written. */
    constructor(
        folder: string | undefined,
        private readonly warn: (problem: string) => void,
    ) {
        this.file = folder === undefined ? undefined : path.join(folder, 'conversations.json');
    }

    /** What was kept; undefined where there is none, or none that can be read. */
    async load(): Promise<unknown> {
        try {
            return this.file === undefined ? undefined : JSON.parse(await readFile(this.file, 'utf8'));
        } catch {
            return undefined;
        }
    }

    save(kept: unknown): Promise<void> {
        const { file } = this;
        if (file !== undefined) {
            const text = JSON.stringify(kept);
            this.work = this.work.then(() => replace(file, text)).catch((error: unknown) => {
                this.warn(`conversations could not be kept: ${String(error)}`);
            });
        }
        return this.work;
    }
}

/** In one step, so that no half of a file is ever read; for the user alone. */
async function replace(file: string, text: string): Promise<void> {
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(`${file}.new`, text, { encoding: 'utf8', mode: 0o600 });
    await rename(`${file}.new`, file);
}
