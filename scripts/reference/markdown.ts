import { anchorOf } from '../../site/.vitepress/anchor-of.ts';

/** Parts of generated pages. */

/** Says in each generated page where it comes from. */
const generated = '<!-- Generated from the code by `npm run generate`. -->';

/** A text as plain text of Markdown: nothing in it is markup, a tag or a template, except `code`. */
export function plain(text: string): string {
  return text
    .split(/(`[^`]*`)/)
    .map((part, index) => (index % 2 === 1 ? code(part.slice(1, -1)) : escaped(part)))
    .join('');
}

/** Something typed, between backticks. */
export function code(text: string): string {
  return `\`${text.replaceAll('|', '\\|')}\``;
}

function escaped(text: string): string {
  return text
    .replace(/[\\*_[\]|]/g, '\\$&')
    .replaceAll('<', '&lt;')
    .replaceAll('{{', '&#123;&#123;');
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

/** A link to the section of the same page that has this heading. */
export function toSection(heading: string, text = heading): string {
  return `[${code(text)}](#${anchorOf(heading)})`;
}

export function page(...parts: readonly string[]): string {
  const [title = '', ...rest] = parts.filter((part) => part !== '');
  return `${[`# ${title}`, generated, ...rest].join('\n\n')}\n`;
}
