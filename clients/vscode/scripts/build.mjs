// Bundles the extension, the chat's page and the unit tests into dist/.
// `node scripts/build.mjs --production` leaves the source maps and the tests out.
import { build } from 'esbuild';
import { readdirSync } from 'node:fs';

const production = process.argv.includes('--production');
const common = { bundle: true, sourcemap: !production, minify: production, logLevel: 'warning' };
const node = { ...common, platform: 'node', format: 'cjs', target: 'node20' };

await build({
    ...node,
    entryPoints: ['src/extension.ts'],
    outfile: 'dist/extension.js',
    external: ['vscode'],
});
await build({
    ...common,
    platform: 'browser',
    format: 'iife',
    target: 'es2022',
    entryPoints: ['src/webview/main.ts'],
    outfile: 'dist/webview/main.js',
});
if (!production) {
    const tests = readdirSync('test').filter((name) => name.endsWith('.test.ts'));
    await build({ ...node, entryPoints: tests.map((name) => `test/${name}`), outdir: 'dist/test' });
}
