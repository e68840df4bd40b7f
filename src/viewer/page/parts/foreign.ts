import { escaped } from '../../../text/escape.ts';

/** Sequences that colour a terminal's text. They say nothing here. */
// biome-ignore lint/complexity/useRegexLiterals: a literal must not hold the escape character.
const colours = new RegExp('\\u001b\\[[\\d;:]*m', 'g');

/** Somebody else's text on one line. Everything invisible is shown as `\u{hex}`. */
export function line(text: string): string {
  return escaped(text.replace(colours, ''));
}

/** Like {@link line}, but keeps line breaks and tabs. */
export function lines(text: string): string {
  return text
    .replace(colours, '')
    .split(/\r?\n/)
    .map((each) => each.split('\t').map(escaped).join('\t'))
    .join('\n');
}
