/** The parts of the server’s start that know no editor. */

import { deepEqual, equal, match } from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import * as path from 'node:path';
import { describe, test } from 'node:test';

import { Backoff } from '../src/server/backoff';
import { findProgram, findServer, type Surroundings } from '../src/server/find';
import { installations } from '../src/server/installations';
import { runInstaller } from '../src/server/installer';
import { ServerProcess } from '../src/server/process';
import { isTrouble, statusLines, statusText } from '../src/server/status';

function around(files: readonly string[], more: Partial<Surroundings> = {}): Surroundings {
    return {
        setting: '',
        searchPath: '/usr/bin:relative:/opt/bin',
        folders: ['/project'],
        trusted: true,
        windows: false,
        path: path.posix,
        home: '/home/me',
        isFile: (file) => files.includes(file),
        ...more,
    };
}

describe('finding the server', () => {
    const everywhere = [
        '/set/fimble',
        '/opt/bin/fimble',
        '/home/me/.local/bin/fimble',
        '/project/.venv/bin/fimble',
    ];

    test('the setting comes first', () => {
        const found = findServer(around(everywhere, { setting: '/set/fimble' }));
        deepEqual(found, { command: '/set/fimble', where: 'the setting' });
    });

    test('a tilde in the setting is the home folder', () => {
        const found = findServer(around(everywhere, { setting: '~/.local/bin/fimble' }));
        deepEqual(found, { command: '/home/me/.local/bin/fimble', where: 'the setting' });
    });

    test('a setting that names nothing is said, not passed over', () => {
        const found = findServer(around(everywhere, { setting: '/gone/fimble' }));
        match('problem' in found ? found.problem : '', /\/gone\/fimble.*no file/);
    });

    test('a relative setting is refused: it would depend on the folder', () => {
        const found = findServer(around(['fimble'], { setting: 'fimble' }));
        match('problem' in found ? found.problem : '', /whole path/);
    });

    test('PATH comes before the workspace', () => {
        deepEqual(findServer(around(everywhere)), { command: '/opt/bin/fimble', where: 'PATH' });
    });

    test('a relative folder of PATH is not looked at', () => {
        equal('problem' in findServer(around(['relative/fimble'])), true);
    });

    test('a trusted workspace’s .venv is used', () => {
        const found = findServer(around(['/project/.venv/bin/fimble']));
        equal('command' in found && found.command, '/project/.venv/bin/fimble');
    });

    test('an untrusted workspace’s .venv is not', () => {
        const found = findServer(around(['/project/.venv/bin/fimble'], { trusted: false }));
        deepEqual('problem' in found && found.installable, true);
    });

    test('nor what of an untrusted workspace is on PATH', () => {
        const file = '/project/.venv/bin/fimble';
        const searchPath = '/project/.venv/bin:/project:/opt/bin';
        deepEqual(findServer(around([file], { searchPath })), { command: file, where: 'PATH' });
        const untrusted = { searchPath, trusted: false };
        equal('problem' in findServer(around([file, '/project/fimble'], untrusted)), true);
        equal(findProgram(around(['/project/uv', '/opt/bin/uv'], untrusted), 'uv'), '/opt/bin/uv');
        const home = { ...untrusted, folders: ['/home/me'], searchPath: '' };
        const found = findServer(around(['/home/me/.local/bin/fimble'], home));
        equal('command' in found, true, 'a workspace that is all of home brought nothing along');
    });

    test('on Windows neither, in whatever case, nor from the current folder', () => {
        const windows = {
            windows: true,
            trusted: false,
            path: path.win32,
            searchPath: 'c:\\PROJECT\\bin;.;C:\\Tools',
            folders: ['C:\\project'],
            home: 'C:\\Users\\me',
        };
        const theirs = ['c:\\PROJECT\\bin\\fimble.exe', 'fimble.exe'];
        equal('problem' in findServer(around(theirs, windows)), true);
        const found = findServer(around([...theirs, 'C:\\Tools\\fimble.exe'], windows));
        equal('command' in found && found.command, 'C:\\Tools\\fimble.exe');
    });

    test('on Windows it is an .exe', () => {
        const file = 'C:\\project\\.venv\\Scripts\\fimble.exe';
        const found = findServer(
            around([file], {
                windows: true,
                path: path.win32,
                searchPath: 'C:\\Windows;bin',
                folders: ['C:\\project'],
                home: 'C:\\Users\\me',
            }),
        );
        equal('command' in found && found.command, file);
    });
});

describe('pauses between starts', () => {
    test('they double, and come to an end', () => {
        const backoff = new Backoff();
        const waits = [0, 0, 0, 0, 0, 0].map((ran) => backoff.next(ran));
        deepEqual(waits, [1000, 2000, 4000, 8000, 16_000, undefined]);
    });

    test('a server that ran for long, or a wish of the user’s, starts anew', () => {
        const backoff = new Backoff();
        backoff.next(0);
        equal(backoff.next(10 * 60_000), 1000);
        backoff.reset();
        equal(backoff.next(0), 1000);
    });
});

describe('installations', () => {
    test('only those whose program is there, with the command as it is run', () => {
        const find = (name: string): string | undefined =>
            name === 'python' ? '/my tools/python' : undefined;
        const ways = installations(find, '/ext/fimble-0.1.0.whl', false);
        equal(ways.length, 1);
        equal(
            ways[0]?.shown,
            '"/my tools/python" -m pip install --user "/ext/fimble-0.1.0.whl[cpu]"',
        );
    });

    test('uv comes before pipx and pip', () => {
        const ways = installations((name) => `/bin/${name}`, '/w.whl', true);
        deepEqual(
            ways.map(({ command }) => command[0]),
            ['/bin/uv', '/bin/pipx', '/bin/python'],
        );
    });
});

describe('a run of an installer', () => {
    async function run(script: string): Promise<[string | undefined, string[]]> {
        const lines: string[] = [];
        const { ended } = runInstaller([process.execPath, '-e', script], (line) => lines.push(line));
        return [await ended, lines];
    }

    test('what it says is heard, and an end without a problem is none', async () => {
        deepEqual(await run('console.log("one"); console.log(" two")'), [undefined, ['one', 'two']]);
    });

    test('the cause of a failure is its error, not the advice behind it', async () => {
        const script =
            'console.error("error: no space left\\nhint: see the manual"); process.exitCode = 2';
        equal((await run(script))[0], 'error: no space left · exit code 2.');
    });

    test('one that cannot be run is said, and one that is stopped', async () => {
        match((await runInstaller(['/gone/uv'], () => undefined).ended) ?? '', /gone\/uv could not/);
        const waiting = runInstaller([process.execPath, '-e', 'setInterval(() => {}, 1000)'], () => undefined);
        waiting.stop();
        match((await waiting.ended) ?? '', /signal SIGTERM|exit code/);
    });
});

describe('the status', () => {
    test('model, device and budget are told', () => {
        const budget = { prompt: 900, answer: 32 };
        const status = { state: 'ready', message: '', model: 'm', provider: 'CPU', budget, remote: '' } as const;
        deepEqual(statusLines(status), [
            'fimble: ready',
            'model: m',
            'device: CPU',
            'prompt: up to 900 tokens, suggestion: up to 32',
        ]);
        equal(isTrouble(status), false);
    });

    test('that text leaves the machine is seen without a click', () => {
        const budget = null;
        const remote = 'models.example';
        const status = { state: 'ready', message: '', model: 'm', provider: 'x', budget, remote } as const;
        match(statusText(status), /cloud.*models\.example/);
        match(statusLines(status).join('\n'), /text is sent to models\.example/);
    });

    test('trouble stands out', () => {
        const stopped = { state: 'stopped', message: 'no such file' } as const;
        equal(isTrouble(stopped), true);
        match(statusText(stopped), /error/);
    });
});

describe('the process', () => {
    test('its last words are the cause', async () => {
        const script = 'console.error("first"); console.error("no module fimble"); process.exit(3)';
        const child = spawn(process.execPath, ['-e', script], { stdio: 'pipe' });
        const server = new ServerProcess(child);
        await once(child, 'close');
        equal(server.cause, 'no module fimble · exit code 3');
    });

    test('one that does not end is ended', async () => {
        const script = 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1000)';
        const child = spawn(process.execPath, ['-e', script], { stdio: 'pipe' });
        await new ServerProcess(child).reap();
        await once(child, 'exit').catch(() => undefined);
        equal(child.killed, true);
    });
});
