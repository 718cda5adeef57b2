/** What a change makes of a text. */

import { equal } from 'node:assert/strict';
import { test } from 'node:test';

import { changedText } from '../src/replacing';

test('parts are replaced where they were, in any order', () => {
    const changes = [
        { start: 6, end: 7, text: 'Z' },
        { start: 0, end: 1, text: 'AA' },
    ];
    equal(changedText('a = b c', changes), 'AA = b Z');
});

test('insertions at one place keep their order', () => {
    const changes = [
        { start: 1, end: 1, text: '1' },
        { start: 1, end: 1, text: '2' },
    ];
    equal(changedText('ab', changes), 'a12b');
});
