/** What the chat’s page and the extension tell each other. */

export interface Block {
    readonly language: string;
    readonly text: string;
    readonly uri: string | null;
    readonly path: string | null;
    readonly range: unknown;
    readonly version: number | null;
}

export interface Used {
    readonly path: string;
    readonly reason: string;
    readonly tokens: number;
}

/** A question with what became of it. */
export interface Exchange {
    readonly question: string;
    readonly about: readonly string[];
    answer: string;
    /** The number of the question at the server; 0 for what no model answered whole. */
    turn: number;
    blocks: readonly Block[];
    used: readonly Used[];
    leftOut: readonly string[];
    /** Why there is no answer, or not all of it. */
    problem: string;
    state: 'streaming' | 'done';
}

export interface ChatState {
    readonly conversations: readonly { readonly id: string; readonly title: string }[];
    readonly current: string;
    readonly exchanges: readonly Exchange[];
    readonly attachments: readonly string[];
    readonly busy: boolean;
}

export interface Completion {
    readonly start: number;
    readonly end: number;
    readonly items: readonly { readonly text: string; readonly detail: string }[];
}

export type ToPage =
    | { readonly type: 'state'; readonly state: ChatState }
    | { readonly type: 'piece'; readonly text: string }
    | ({ readonly type: 'completion'; readonly request: number } & Completion)
    | { readonly type: 'focus' };

export type ToExtension =
    | { readonly type: 'ready' }
    | { readonly type: 'stop' }
    | { readonly type: 'new' }
    | { readonly type: 'delete' }
    | { readonly type: 'attach' }
    | { readonly type: 'send'; readonly text: string }
    | { readonly type: 'choose'; readonly id: string }
    | { readonly type: 'detach'; readonly index: number }
    | { readonly type: 'copy' | 'insert'; readonly text: string }
    | { readonly type: 'apply'; readonly exchange: number; readonly block: number }
    | { readonly type: 'complete'; readonly request: number; readonly text: string; readonly character: number };
