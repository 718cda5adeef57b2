/** Names of tasks, files and symbols above the message: a list box that keys alone can use. */

import type { Completion } from '../chat/messages';
import { element } from './dom';

type Ask = (request: number, text: string, character: number) => void;

export class Names {
    private request = 0;
    private shown: Completion | undefined;
    private chosen = 0;

    constructor(
        private readonly field: HTMLTextAreaElement,
        private readonly list: HTMLElement,
        private readonly ask: Ask,
    ) {
        field.addEventListener('input', () => {
            this.look();
        });
        field.addEventListener('blur', () => {
            this.close();
        });
    }

    /** Shows what was found, unless something was typed since. */
    show(request: number, found: Completion): void {
        if (request !== this.request || found.items.length === 0) {
            return;
        }
        this.shown = found;
        this.list.replaceChildren(
            ...found.items.map(({ text, detail }, index) => {
                const item = element('li', '', text);
                item.id = `name-${index}`;
                item.role = 'option';
                if (detail !== '' && detail !== text) {
                    item.append(' ', element('span', 'detail', detail));
                }
                item.addEventListener('mousedown', (event) => {
                    event.preventDefault();
                    this.chosen = index;
                    this.take();
                });
                return item;
            }),
        );
        this.list.hidden = false;
        this.field.setAttribute('aria-expanded', 'true');
        this.choose(0);
    }

    close(): void {
        this.request += 1;
        this.shown = undefined;
        this.list.hidden = true;
        this.field.setAttribute('aria-expanded', 'false');
        this.field.removeAttribute('aria-activedescendant');
    }

    /** Whether a key was for the list. */
    takes({ key, shiftKey }: KeyboardEvent): boolean {
        if (this.shown === undefined) {
            return false;
        }
        if (key === 'ArrowDown' || key === 'ArrowUp') {
            const count = this.shown.items.length;
            this.choose((this.chosen + (key === 'ArrowDown' ? 1 : count - 1)) % count);
        } else if ((key === 'Tab' || key === 'Enter') && !shiftKey) {
            this.take();
        } else if (key === 'Escape') {
            this.close();
        } else {
            return false;
        }
        return true;
    }

    /** Asks for what may stand at the cursor; what is no name the server tells apart. */
    private look(): void {
        this.close();
        const { value, selectionStart } = this.field;
        if (/[/@#]/.test(value.slice(0, selectionStart))) {
            this.ask(this.request, value, selectionStart);
        }
    }

    private choose(index: number): void {
        this.chosen = index;
        for (const [at, item] of [...this.list.children].entries()) {
            item.setAttribute('aria-selected', String(at === index));
        }
        this.field.setAttribute('aria-activedescendant', `name-${index}`);
        this.list.children[index]?.scrollIntoView({ block: 'nearest' });
    }

    private take(): void {
        const name = this.shown?.items[this.chosen];
        if (this.shown !== undefined && name !== undefined) {
            this.field.setRangeText(name.text, this.shown.start, this.shown.end, 'end');
        }
        this.close();
        if (name?.text.endsWith(':') === true) {
            this.look(); // of `@file:` the file is yet to be chosen
        }
    }
}
