import { printedText } from '../bounds/anybody.ts';
import { cut } from './cut.ts';
import { escaped } from './escape.ts';
import type { Redact } from './printable.ts';

/** What Markdown, HTML and GitHub's own marks are made of is all of it ASCII, and none of it these. */
const meansSomething = /[[\x21-\x7e]--[a-zA-Z0-9,\-]]/gv;

/**
 * Somebody else's text within a line or a table's cell of a GitHub step summary. It is shown as it is: no
 * link, no mention, no HTML, no further cell.
 */
export function markdownCell(text: string, redact: Redact): string {
  const shown = escaped(cut(redact(text), printedText.bytes.value));
  return `<code>${shown.replace(meansSomething, (mark) => `&#${mark.charCodeAt(0)};`)}</code>`;
}
