/** The conversations of one workspace, and what is attached to the next question. Knows no editor. */

import type { ChatState, Exchange } from './messages';

const LONGEST_TITLE = 40;
/** Older ones are forgotten. */
const MOST = 30;

interface Conversation {
    readonly id: string;
    exchanges: Exchange[];
}

/** What is attached: the protocol’s attachment, and how it is shown. */
export interface Attached {
    readonly label: string;
    readonly attachment: Readonly<Record<string, unknown>>;
}

export class Conversations {
    private all: Conversation[] = [];
    private current: Conversation;
    attached: readonly Attached[] = [];

    /** `newId` gives names that no conversation had before. */
    constructor(private readonly newId: () => string) {
        this.current = this.begin();
    }

    get id(): string {
        return this.current.id;
    }

    /** An empty conversation; one that is empty already is good enough. */
    begin(): Conversation {
        const empty = this.all.find(({ exchanges }) => exchanges.length === 0);
        this.current = empty ?? { id: this.newId(), exchanges: [] };
        if (empty === undefined) {
            this.all = [this.current, ...this.all].slice(0, MOST);
        }
        return this.current;
    }

    choose(id: string): void {
        this.current = this.all.find((each) => each.id === id) ?? this.current;
    }

    /** Forgets the current one; the newest of the others is current then. */
    remove(): void {
        this.all = this.all.filter((each) => each !== this.current);
        this.current = this.all[0] ?? this.begin();
    }

    /** Forgets what was said in the current one. */
    clear(): void {
        this.current.exchanges = [];
    }

    exchange(index: number): Exchange | undefined {
        return this.current.exchanges[index];
    }

    /** What a model answered, for a server that does not know the conversation. */
    get history(): { question: string; answer: string }[] {
        const answered = this.current.exchanges.filter(({ turn }) => turn > 0);
        return answered.map(({ question, answer }) => ({ question, answer }));
    }

    /** A question, with all that is attached; nothing is attached any more then. */
    ask(question: string): { exchange: Exchange; attached: readonly Attached[] } {
        const { attached } = this;
        const exchange: Exchange = {
            question,
            about: attached.map(({ label }) => label),
            answer: '',
            turn: 0,
            blocks: [],
            used: [],
            leftOut: [],
            problem: '',
            state: 'streaming',
        };
        this.current.exchanges.push(exchange);
        this.attached = [];
        return { exchange, attached };
    }

    state(busy: boolean): ChatState {
        return {
            conversations: this.all.map(({ id, exchanges }) => ({ id, title: title(exchanges[0]) })),
            current: this.current.id,
            exchanges: this.current.exchanges,
            attachments: this.attached.map(({ label }) => label),
            busy,
        };
    }

    /** To be kept: without the places of code, which count versions that end with the window. */
    kept(): unknown {
        const said = this.all.filter(({ exchanges }) => exchanges.length > 0);
        return said.map(({ id, exchanges }) => ({
            id,
            exchanges: exchanges.map((each) => ({ ...each, blocks: [], state: 'done' })),
        }));
    }

    /** Takes back what was kept; what is damaged is left out. An empty one is current. */
    restore(kept: unknown): void {
        const found = Array.isArray(kept) ? kept.filter(isConversation) : [];
        this.all = [...this.all, ...found].slice(0, MOST);
    }
}

function title(first: Exchange | undefined): string {
    const words = first === undefined ? ['New conversation'] : [first.question, ...first.about];
    const text = words.join(' ').replace(/\s+/g, ' ');
    return text.length > LONGEST_TITLE ? `${text.slice(0, LONGEST_TITLE)}…` : text;
}

function isConversation(value: unknown): value is Conversation {
    const { id, exchanges } = fields(value);
    return typeof id === 'string' && Array.isArray(exchanges) && exchanges.every(isExchange);
}

function isExchange(value: unknown): value is Exchange {
    const found = fields(value);
    return (
        ['question', 'answer', 'problem'].every((name) => typeof found[name] === 'string') &&
        ['about', 'blocks', 'used', 'leftOut'].every((name) => Array.isArray(found[name])) &&
        typeof found['turn'] === 'number' &&
        found['state'] === 'done'
    );
}

function fields(value: unknown): Record<string, unknown> {
    return typeof value === 'object' && value !== null ? { ...value } : {};
}
