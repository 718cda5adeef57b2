/** Markdown of an answer as HTML in which nothing acts: a model’s words are no page of their own. */

import MarkdownIt from 'markdown-it';

// Tags in the text stay text, no picture is loaded, and a link leads to the web or is text.
const MARKDOWN = new MarkdownIt({ html: false, linkify: false }).disable(['image']);
MARKDOWN.validateLink = (url) => /^https?:\/\/[^/]/i.test(url);

MARKDOWN.renderer.rules['link_open'] = (tokens, index, options, _env, renderer) => {
    const token = tokens[index];
    // Where it leads is what is shown of it, not what the model says of it.
    token?.attrSet('title', token.attrGet('href') ?? '');
    return renderer.renderToken(tokens, index, options);
};
// A column’s alignment would be a style of the element’s own, which the page does not allow.
MARKDOWN.renderer.rules['th_open'] = () => '<th>';
MARKDOWN.renderer.rules['td_open'] = () => '<td>';

export function rendered(text: string): string {
    return MARKDOWN.render(text);
}
