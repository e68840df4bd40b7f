import { printedText } from '../bounds/anyone.ts';
import { escaped } from './escape.ts';
import { cut, type Redact } from './printable.ts';

/**
 * All ASCII characters except letters, digits, the comma and the hyphen. Markdown, HTML and GitHub use only
 * these as markup.
 */
const meansSomething = /[[\x21-\x7e]--[a-zA-Z0-9,\-]]/gv;

/**
 * Foreign text within a line or a table's cell of a GitHub step summary. It shows the plain text: no link, no
 * mention, no HTML, no further cell.
 */
export function markdownCell(text: string, redact: Redact): string {
  const shown = escaped(cut(redact(text), printedText.bytes.value));
  return `<code>${shown.replace(meansSomething, (mark) => `&#${mark.charCodeAt(0)};`)}</code>`;
}
