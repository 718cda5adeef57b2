/** The chat’s page: shows what the extension tells, and tells it what the user does. */

import type { ChatState, ToExtension, ToPage } from '../chat/messages';
import { button, element, part } from './dom';
import { Exchanges } from './exchanges';
import { Names } from './names';

const editor = acquireVsCodeApi();

function tell(message: ToExtension): void {
    editor.postMessage(message);
}

const exchanges = new Exchanges(part('exchanges'), tell);
const message = part('message') as HTMLTextAreaElement;
const conversations = part('conversations') as HTMLSelectElement;
const names = new Names(message, part('names'), (request, text, character) =>
    tell({ type: 'complete', request, text, character }),
);
const sendButton = part('send') as HTMLButtonElement;
const newButton = part('new') as HTMLButtonElement;
const deleteButton = part('delete') as HTMLButtonElement;
const stopButton = part('stop') as HTMLButtonElement;
let busy = false;

function showState(state: ChatState): void {
    conversations.replaceChildren(
        ...state.conversations.map(({ id, title }) => new Option(title, id, false, id === state.current)),
    );
    part('attachments').replaceChildren(...state.attachments.map(attachment));
    exchanges.show(state);
    for (const each of [newButton, deleteButton, conversations]) {
        each.disabled = state.busy;
    }
    const hadFocus = document.activeElement;
    sendButton.hidden = state.busy;
    stopButton.hidden = !state.busy;
    // A button that goes takes the focus with it.
    if (hadFocus === sendButton || hadFocus === stopButton) {
        message.focus();
    }
    if (busy !== state.busy) {
        busy = state.busy;
        say(state);
    }
}

/** For a screen reader: an answer is read once it is there, not while it comes in. */
function say(state: ChatState): void {
    const last = state.exchanges.at(-1);
    const answer = last === undefined ? '' : `Answer: ${last.answer} ${last.problem}`;
    part('said').textContent = busy ? 'Waiting for the answer.' : answer;
}

function attachment(label: string, index: number): HTMLElement {
    const item = element('li', 'attachment', label);
    const remove = button('×', () => tell({ type: 'detach', index }));
    remove.setAttribute('aria-label', `Do not attach ${label}`);
    item.append(remove);
    return item;
}

function send(): void {
    if (message.value.trim() !== '' && !busy) {
        tell({ type: 'send', text: message.value });
        message.value = '';
        names.close();
    }
}

window.addEventListener('message', ({ data }: MessageEvent<ToPage>) => {
    if (data.type === 'state') {
        showState(data.state);
    } else if (data.type === 'piece') {
        exchanges.add(data.text);
    } else if (data.type === 'completion') {
        names.show(data.request, data);
    } else {
        message.focus();
    }
});
message.addEventListener('keydown', (event) => {
    if (names.takes(event)) {
        event.preventDefault();
    } else if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        send();
    }
});
document.addEventListener('keydown', ({ key, defaultPrevented }) => {
    if (key === 'Escape' && !defaultPrevented) {
        tell({ type: 'stop' });
    }
});
part('form').addEventListener('submit', (event) => {
    event.preventDefault();
    send();
});
stopButton.addEventListener('click', () => tell({ type: 'stop' }));
newButton.addEventListener('click', () => tell({ type: 'new' }));
deleteButton.addEventListener('click', () => tell({ type: 'delete' }));
part('attach').addEventListener('click', () => tell({ type: 'attach' }));
conversations.addEventListener('change', () => tell({ type: 'choose', id: conversations.value }));
tell({ type: 'ready' });
