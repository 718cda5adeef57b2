/** What the server says of itself in `fimble/status`, and how that is shown. */

export interface Status {
    readonly state: 'starting' | 'loading' | 'ready' | 'busy' | 'error' | 'disabled';
    readonly message: string;
    readonly model: string;
    readonly provider: string;
    readonly budget: { readonly prompt: number; readonly answer: number } | null;
    /** The other machines that text is sent to; empty where there are none. */
    readonly remote: string;
}

/** Also what the extension itself knows before there is a server, or after. */
export type Shown = Status | { readonly state: 'stopped' | 'missing'; readonly message: string };

const ICONS: Record<Shown['state'], string> = {
    starting: '$(loading~spin)',
    loading: '$(loading~spin)',
    ready: '$(sparkle)',
    busy: '$(loading~spin)',
    error: '$(error)',
    disabled: '$(circle-slash)',
    stopped: '$(error)',
    missing: '$(warning)',
};

const WORDS: Record<Shown['state'], string> = {
    starting: 'starting',
    loading: 'loading the model',
    ready: 'ready',
    busy: 'working',
    error: 'error',
    disabled: 'off',
    stopped: 'not running',
    missing: 'not installed',
};

export function statusText(shown: Shown): string {
    const elsewhere = remoteOf(shown) === '' ? '' : ` $(cloud) ${remoteOf(shown)}`;
    return `${ICONS[shown.state]} fimble${elsewhere}`;
}

export function isTrouble(shown: Shown): boolean {
    return shown.state === 'error' || shown.state === 'stopped' || shown.state === 'missing';
}

/** Lines for a person: the state, the model and its device, and how long prompts are. */
export function statusLines(shown: Shown): string[] {
    const lines = [`fimble: ${WORDS[shown.state]}`];
    if (shown.message !== '') {
        lines.push(shown.message);
    }
    if (remoteOf(shown) !== '') {
        lines.push(`text is sent to ${remoteOf(shown)}`);
    }
    if ('model' in shown && shown.model !== '') {
        lines.push(`model: ${shown.model}`, `device: ${shown.provider || 'unknown'}`);
    }
    if ('budget' in shown && shown.budget !== null) {
        const { prompt, answer } = shown.budget;
        lines.push(`prompt: up to ${prompt} tokens, suggestion: up to ${answer}`);
    }
    return lines;
}

function remoteOf(shown: Shown): string {
    return 'remote' in shown ? shown.remote : '';
}
