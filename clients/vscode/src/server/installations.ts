/** The commands that install the server from the wheel that the extension brings. */

export interface Installation {
    readonly label: string;
    readonly command: readonly string[];
    /** The command as it is shown. */
    readonly shown: string;
}

/** Those whose program is there, the best first. */
export function installations(
    find: (program: string) => string | undefined,
    wheel: string,
    windows: boolean,
): Installation[] {
    const source = `${wheel}[cpu]`;
    const python = windows ? ['python', 'py'] : ['python3', 'python'];
    const ways: readonly (readonly [string, readonly string[], readonly string[]])[] = [
        ['uv: an environment of its own', ['uv'], ['tool', 'install', '--force', source]],
        ['pipx: an environment of its own', ['pipx'], ['install', '--force', source]],
        ['pip: in your own packages', python, ['-m', 'pip', 'install', '--user', source]],
    ];
    return ways.flatMap(([label, programs, args]) => {
        const program = programs.map(find).find((each) => each !== undefined);
        if (program === undefined) {
            return [];
        }
        const command = [program, ...args];
        return [{ label, command, shown: command.map(quoted).join(' ') }];
    });
}

function quoted(word: string): string {
    return /[\s[\]"'$&;()<>|*?]/.test(word) ? `"${word}"` : word;
}
