/** How long to wait before the server is started again, and when to stop trying. */

const LONGEST_MS = 16_000;
const MOST_TRIES = 5;
/** A server that ran for so long was fine; what ends it then is a new trouble. */
const FINE_AFTER_MS = 3 * 60_000;

export class Backoff {
    private tries = 0;

    /** Milliseconds to wait; undefined when enough was tried. `ranMs` is how long it ran. */
    next(ranMs: number): number | undefined {
        if (ranMs >= FINE_AFTER_MS) {
            this.tries = 0;
        }
        if (this.tries >= MOST_TRIES) {
            return undefined;
        }
        const wait = Math.min(LONGEST_MS, 1000 * 2 ** this.tries);
        this.tries += 1;
        return wait;
    }

    /** The user asked for a start: a new chance. */
    reset(): void {
        this.tries = 0;
    }
}
