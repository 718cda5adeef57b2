/** Elements of the page. */

/** One that the page has: it has all that are asked for. */
export function part(id: string): HTMLElement {
    return document.getElementById(id) as HTMLElement;
}

export function element(tag: string, className: string, text = ''): HTMLElement {
    const made = document.createElement(tag);
    made.className = className;
    made.textContent = text;
    return made;
}

export function button(label: string, pressed: () => void): HTMLButtonElement {
    const made = document.createElement('button');
    made.type = 'button';
    made.textContent = label;
    made.addEventListener('click', pressed);
    return made;
}
