/** A text with parts of it replaced. Knows no editor. */

export interface Replacement {
    /** UTF-16 code units of the text. */
    readonly start: number;
    readonly end: number;
    readonly text: string;
}

/** Replacements do not overlap; those at one place are made in their order. */
export function changedText(text: string, replacements: readonly Replacement[]): string {
    const parts: string[] = [];
    let done = 0;
    for (const { start, end, text: replacement } of [...replacements].sort((a, b) => a.start - b.start)) {
        parts.push(text.slice(done, start), replacement);
        done = end;
    }
    return parts.join('') + text.slice(done);
}
