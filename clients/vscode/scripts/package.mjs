// Makes fimble.vsix: the extension, and the server as a wheel, for those who have none yet.
// PYTHON names the Python that makes the wheel (default: python3, on Windows python); FIMBLE_WHEEL
// is a wheel that is there already.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, rmSync } from 'node:fs';
import { basename } from 'node:path';

const windows = process.platform === 'win32';
const python = process.env.PYTHON || (windows ? 'python' : 'python3');

function run(command, ...args) {
    const ended = spawnSync(command, args, { stdio: 'inherit' });
    if (ended.status !== 0) {
        console.error(`${command} ${args.join(' ')}: ${ended.error?.message ?? `exit code ${ended.status}`}`);
        process.exit(1);
    }
}

rmSync('dist', { recursive: true, force: true });
run(process.execPath, 'scripts/build.mjs', '--production');
if (process.env.FIMBLE_WHEEL) {
    mkdirSync('dist/server');
    copyFileSync(process.env.FIMBLE_WHEEL, `dist/server/${basename(process.env.FIMBLE_WHEEL)}`);
} else {
    run(python, '-m', 'pip', 'wheel', '--quiet', '--no-deps', '--wheel-dir', 'dist/server', '../..');
}
copyFileSync('../../LICENSE', 'dist/LICENSE');
const vsce = 'node_modules/@vscode/vsce/vsce';
run(process.execPath, vsce, 'package', '--no-dependencies', '--skip-license', '--allow-missing-repository', '--out', 'fimble.vsix');
