/** What an answer’s Markdown becomes: no text, however hostile, brings along what acts or loads. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { describe, test } from 'node:test';

import { rendered } from '../src/webview/markdown';

/** All that may stand between angle brackets, whole. */
const HARMLESS = [
    /^<\/?(p|ul|li|ol|pre|code|em|strong|s|blockquote|h[1-6]|table|thead|tbody|tr|th|td)>$/,
    /^<(hr|br)>$/,
    /^<ol start="\d+">$/,
    /^<code class="language-[^"<>]*">$/,
    /^<a href="https?:\/\/[^"<>]+" title="https?:\/\/[^"<>]+">$/,
    /^<\/a>$/,
];

function tags(html: string): string[] {
    return html.match(/<[^>]*>?/g) ?? [];
}

const ADDRESSES = [
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'java&#115;cript:alert(1)',
    'java\tscript:alert(1)',
    '\u0001javascript:alert(1)',
    'vbscript:x',
    'command:workbench.action.quit',
    'command%3Aworkbench.action.quit',
    'vscode://fimble.fimble/x',
    'vscode-resource:/etc/passwd',
    'file:///etc/passwd',
    'data:text/html,<script>alert(1)</script>',
    'data:image/svg+xml;base64,PHN2Zz4=',
    'mailto:a@example.org',
    'tel:1',
    'blob:x',
    'ftp://example.org/',
    '//example.org/x',
    '/etc/passwd',
    '#exchanges',
    'https:',
    'https:///x',
];

const HOSTILE = [
    '<script>alert(1)</script>',
    '<img src=x onerror=alert(1)>',
    '<svg/onload=alert(1)>',
    '<iframe src="https://example.org"></iframe>',
    '<style>body{display:none}</style>',
    '<meta http-equiv="refresh" content="0;url=https://example.org">',
    '<base href="https://example.org/">',
    '<form action="https://example.org"><button>Send</button></form>',
    '<!-- --><![CDATA[<b>]]><?php ?><!DOCTYPE html>',
    '</div></main><b>',
    '![x](https://example.org/x.png)',
    '![x][1]\n\n[1]: https://example.org/x.png',
    '[![x](https://example.org/x.png)](https://example.org)',
    '```"><img src=x onerror=alert(1)>\nx\n```',
    '``` python" onclick="alert(1)\nx\n```',
    '[x](https://example.org/"onclick="alert(1))',
    '[x](https://example.org "title\\" onclick=\\"alert(1)")',
    '[x](<https://example.org/" onclick="alert(1)>)',
    '<https://example.org/"onclick="alert(1)>',
    '| a |\n| :-: |\n| <b onclick=alert(1)> |',
    '| a\n|--\n||||||\n| b | <script>',
    '&lt;script&gt;alert(1)&lt;/script&gt;',
    '\u202ehttps://example.org\u0000<b>',
    '>'.repeat(5000),
    '['.repeat(5000),
    '* '.repeat(2000),
    '`'.repeat(4999),
    `${'|'.repeat(3000)}\n${'|-'.repeat(3000)}|\n${'|\n'.repeat(3000)}`,
];

describe('the Markdown of an answer', () => {
    test('has nothing that acts, whatever a model says', () => {
        const links = ADDRESSES.flatMap((each) => [
            `[x](${each})`,
            `[x](<${each}>)`,
            `<${each}>`,
            `[x][1]\n\n[1]: ${each}`,
        ]);
        for (const text of [...HOSTILE, ...links]) {
            const found = tags(rendered(text));
            const acting = found.filter((tag) => !HARMLESS.some((each) => each.test(tag)));
            deepEqual(acting, [], text.slice(0, 80));
        }
    });

    test('has no link but to the web', () => {
        for (const address of ADDRESSES) {
            ok(!rendered(`[x](<${address}>) <${address}>`).includes('<a '), address);
        }
        match(rendered('[x](https://example.org/a)'), /<a href="https:\/\/example.org\/a"/);
    });

    test('shows where a link leads, whatever it calls itself', () => {
        const html = rendered('[https://good.example](https://bad.example "https://good.example")');
        match(html, /title="https:\/\/bad\.example"/);
    });

    test('stays in proportion to its text, however many columns a table claims', () => {
        const columns = 1000;
        const text = `${'|a'.repeat(columns)}|\n${'|-'.repeat(columns)}|\n${'|\n'.repeat(10000)}`;
        ok(rendered(text).length < 100 * text.length);
    });

    test('is what Markdown is for', () => {
        equal(rendered('It is **checked**.'), '<p>It is <strong>checked</strong>.</p>\n');
        equal(
            rendered('```python\na < b\n```'),
            '<pre><code class="language-python">a &lt; b\n</code></pre>\n',
        );
        match(rendered('| a |\n| :-: |\n| 1 |'), /<th>a<\/th>[^]*<td>1<\/td>/);
    });
});
