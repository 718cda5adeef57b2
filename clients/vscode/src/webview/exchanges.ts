/** The questions and answers on the page: made once each, and again only when they have changed. */

import type { ChatState, Exchange, ToExtension } from '../chat/messages';
import { button, element } from './dom';
import { rendered } from './markdown';

interface Shown {
    /** What it was made of. */
    readonly key: string;
    readonly nodes: readonly HTMLElement[];
}

export class Exchanges {
    private shown: Shown[] = [];
    private streamed: { text: string; readonly body: HTMLElement } | undefined;
    private drawing = false;

    constructor(
        private readonly list: HTMLElement,
        private readonly tell: (message: ToExtension) => void,
    ) {}

    /** Whoever reads further up, or has the focus on a button, is left where they are. */
    show({ current, exchanges, busy }: ChatState): void {
        const follow = this.isAtEnd || busy;
        const before = this.shown;
        this.streamed = undefined;
        this.shown = exchanges.map((exchange, index) => {
            const key = JSON.stringify([current, exchange]);
            const same = before[index];
            const kept = same?.key === key && exchange.state === 'done';
            return kept ? same : { key, nodes: this.nodes(exchange, index) };
        });
        for (const [index, old] of before.entries()) {
            if (this.shown[index] !== old) {
                old.nodes.forEach((node) => node.remove());
            }
        }
        for (const [index, each] of this.shown.entries()) {
            if (before[index] !== each) {
                this.list.append(...each.nodes);
            }
        }
        this.list.setAttribute('aria-busy', String(busy));
        if (follow) {
            this.scrollDown();
        }
    }

    /** More of the answer that comes in; drawn with the next picture, whatever comes until then. */
    add(text: string): void {
        if (this.streamed === undefined) {
            return;
        }
        this.streamed.text += text;
        if (!this.drawing) {
            this.drawing = true;
            requestAnimationFrame(() => {
                this.drawing = false;
                this.draw();
            });
        }
    }

    private draw(): void {
        if (this.streamed !== undefined) {
            const follow = this.isAtEnd;
            this.streamed.body.innerHTML = rendered(this.streamed.text);
            if (follow) {
                this.scrollDown();
            }
        }
    }

    private get isAtEnd(): boolean {
        const { scrollTop, scrollHeight, clientHeight } = this.list;
        return scrollHeight - scrollTop - clientHeight < 40;
    }

    private scrollDown(): void {
        this.list.scrollTop = this.list.scrollHeight;
    }

    private nodes(exchange: Exchange, index: number): HTMLElement[] {
        const question = element('section', 'question', exchange.question);
        question.setAttribute('aria-label', 'Question');
        for (const label of exchange.about) {
            question.append(element('div', 'about', label));
        }
        const answer = element('section', 'answer');
        answer.setAttribute('aria-label', 'Answer');
        const body = element('div', 'body');
        // No tag in it is the answer’s own: see `rendered`.
        body.innerHTML = rendered(exchange.answer);
        answer.append(body);
        if (exchange.state === 'streaming') {
            this.streamed = { text: exchange.answer, body };
            answer.append(element('p', 'waiting', '…'));
            return [question, answer];
        }
        this.addButtons(body, exchange, index);
        if (exchange.problem !== '') {
            answer.append(element('p', 'problem', exchange.problem));
        }
        if (exchange.used.length + exchange.leftOut.length > 0) {
            answer.append(contextOf(exchange));
        }
        return [question, answer];
    }

    /** What can be done with each block of code. */
    private addButtons(body: HTMLElement, exchange: Exchange, index: number): void {
        let next = 0;
        for (const code of body.querySelectorAll('pre > code')) {
            const text = code.textContent;
            const bar = element('div', 'code-buttons');
            bar.append(
                button('Copy', () => this.tell({ type: 'copy', text })),
                button('Insert', () => this.tell({ type: 'insert', text })),
            );
            // What the server made no block of cannot be applied.
            const block = exchange.blocks.findIndex(
                (each, at) => at >= next && each.text.trim() === text.trim(),
            );
            if (block !== -1) {
                next = block + 1;
                bar.append(button('Apply', () => this.tell({ type: 'apply', exchange: index, block })));
            }
            code.parentElement?.before(bar);
        }
    }
}

function contextOf({ used, leftOut }: Exchange): HTMLElement {
    const details = element('details', 'context');
    const list = element('ul', '');
    for (const { path, reason, tokens } of used) {
        list.append(element('li', '', `${path ? `${path}: ` : ''}${reason} (${tokens} tokens)`));
    }
    for (const left of leftOut) {
        list.append(element('li', 'left-out', `left out: ${left}`));
    }
    const pieces = used.length === 1 ? '1 piece' : `${used.length} pieces`;
    details.append(element('summary', '', `Context: ${pieces}`), list);
    return details;
}
