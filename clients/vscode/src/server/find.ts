/** Where the server's program is. Looks at files, starts nothing, and knows no editor. */

import type { PlatformPath } from 'node:path';

export interface Surroundings {
    /** What the user set; empty if nothing. */
    readonly setting: string;
    /** The environment variable PATH. */
    readonly searchPath: string;
    /** The workspace's folders. */
    readonly folders: readonly string[];
    /** Whether programs that a workspace brings along may be run. */
    readonly trusted: boolean;
    readonly windows: boolean;
    /** How paths are written on that system. */
    readonly path: PlatformPath;
    readonly home: string;
    readonly isFile: (file: string) => boolean;
}

export interface Found {
    readonly command: string;
    /** For a person: where it was found. */
    readonly where: string;
}

export interface Missing {
    /** Why there is none, in a sentence. */
    readonly problem: string;
    /** Whether an installation would help. */
    readonly installable: boolean;
}

export function findServer(around: Surroundings): Found | Missing {
    if (around.setting !== '') {
        return fromSetting(around);
    }
    const programs = around.windows ? ['fimble.exe'] : ['fimble'];
    for (const folder of searched(around)) {
        const command = firstFile(around, folder, programs);
        if (command !== undefined) {
            return { command, where: 'PATH' };
        }
    }
    if (around.trusted) {
        for (const folder of around.folders) {
            const scripts = around.path.join(folder, '.venv', around.windows ? 'Scripts' : 'bin');
            const command = firstFile(around, scripts, programs);
            if (command !== undefined) {
                return { command, where: 'the workspace’s .venv' };
            }
        }
    }
    const venv = around.trusted ? ' or in a .venv of the workspace' : '';
    return { problem: `The fimble server was not found on PATH${venv}.`, installable: true };
}

/** A program on PATH, such as uv; undefined where there is none. */
export function findProgram(around: Surroundings, name: string): string | undefined {
    const names = around.windows ? [`${name}.exe`] : [name];
    for (const folder of searched(around)) {
        const file = firstFile(around, folder, names);
        if (file !== undefined) {
            return file;
        }
    }
    return undefined;
}

function fromSetting(around: Surroundings): Found | Missing {
    const { path } = around;
    const command = around.setting.startsWith('~')
        ? path.join(around.home, around.setting.slice(1))
        : around.setting;
    const setting = 'The setting fimble.client.serverPath';
    if (!path.isAbsolute(command)) {
        return { problem: `${setting} must be a whole path; it is “${command}”.`, installable: false };
    }
    if (!around.isFile(command)) {
        return { problem: `${setting} names “${command}”, which is no file.`, installable: false };
    }
    return { command, where: 'the setting' };
}

/**
 * The folders of PATH, then those where uv, pipx and pip put programs. A relative one would be
 * looked for in whatever folder the editor was started from; one inside a workspace, as of an
 * environment that was active when the editor was started, is the workspace’s own.
 */
function searched(around: Surroundings): string[] {
    const { path, trusted } = around;
    const local = path.join(around.home, '.local', 'bin');
    return [...around.searchPath.split(path.delimiter), local].filter(
        (folder) => path.isAbsolute(folder) && (trusted || !isInWorkspace(around, folder)),
    );
}

/** Whether a folder came with the workspace. One that holds all of home did not. */
function isInWorkspace({ path, folders, home }: Surroundings, folder: string): boolean {
    const isWithin = (inner: string, outer: string): boolean => {
        const way = path.relative(outer, inner);
        return way !== '..' && !way.startsWith(`..${path.sep}`) && !path.isAbsolute(way);
    };
    return folders.some((each) => isWithin(folder, each) && !isWithin(home, each));
}

function firstFile(
    around: Surroundings,
    folder: string,
    names: readonly string[],
): string | undefined {
    return names.map((name) => around.path.join(folder, name)).find(around.isFile);
}
