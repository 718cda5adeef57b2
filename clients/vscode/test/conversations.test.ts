/** The conversations of a workspace. */

import { deepEqual, equal } from 'node:assert/strict';
import { describe, test } from 'node:test';

import { Conversations } from '../src/chat/conversations';
import type { Exchange } from '../src/chat/messages';

function numbered(): Conversations {
    let count = 0;
    return new Conversations(() => {
        count += 1;
        return String(count);
    });
}

function answered(conversations: Conversations, question: string, answer: string): Exchange {
    const { exchange } = conversations.ask(question);
    return Object.assign(exchange, { answer, turn: 1, state: 'done' });
}

function asJson(value: unknown): unknown {
    return JSON.parse(JSON.stringify(value));
}

describe('conversations', () => {
    test('what is attached belongs to one question', () => {
        const conversations = numbered();
        conversations.attached = [{ label: 'a.py:1-2', attachment: { kind: 'file' } }];
        deepEqual(conversations.ask('Why?').exchange.about, ['a.py:1-2']);
        deepEqual(conversations.ask('And?').attached, []);
    });

    test('a server that knows nothing of it is told what a model answered', () => {
        const conversations = numbered();
        answered(conversations, 'Why?', 'Because.');
        Object.assign(conversations.ask('And?').exchange, { answer: 'Bec', problem: 'Stopped.' });
        conversations.ask('/help').exchange.answer = 'Commands';
        deepEqual(conversations.history, [{ question: 'Why?', answer: 'Because.' }]);
    });

    test('one can go back to an older one; there is only one empty one', () => {
        const conversations = numbered();
        conversations.ask('Why?');
        conversations.begin();
        conversations.begin();
        equal(conversations.state(false).conversations.length, 2);
        conversations.choose('1');
        equal(conversations.state(false).exchanges.length, 1);
    });

    test('one that is deleted is gone; there is always one', () => {
        const conversations = numbered();
        conversations.ask('Why?');
        conversations.begin();
        conversations.ask('And?');
        conversations.remove();
        equal(conversations.state(false).exchanges[0]?.question, 'Why?');
        conversations.remove();
        deepEqual(conversations.state(false).conversations, [{ id: '3', title: 'New conversation' }]);
        deepEqual(conversations.kept(), []);
    });

    test('only the newest thirty are there', () => {
        const conversations = numbered();
        for (let count = 0; count < 40; count += 1) {
            conversations.begin();
            conversations.ask('Why?');
        }
        equal(conversations.state(false).conversations.length, 30);
        equal(conversations.state(false).current, '40');
    });

    test('what was kept is there again, below an empty one', () => {
        const before = numbered();
        const block = { language: '', text: 'x', uri: 'file:///a.py', path: '', range: null, version: 1 };
        answered(before, 'Why?', 'Because.').blocks = [block];
        const after = new Conversations(() => 'new');
        after.restore(asJson(before.kept()));
        deepEqual(
            after.state(false).conversations.map(({ title }) => title),
            ['New conversation', 'Why?'],
        );
        after.choose('1');
        deepEqual(after.history, [{ question: 'Why?', answer: 'Because.' }]);
        // Versions of documents count anew in each window.
        deepEqual(after.exchange(0)?.blocks, []);
    });

    test('what is damaged is left out', () => {
        for (const damaged of [undefined, null, 'text', {}, [1, null, {}], [{ id: '1', exchanges: [{}] }]]) {
            const conversations = numbered();
            conversations.restore(damaged);
            equal(conversations.state(false).conversations.length, 1);
        }
    });
});
