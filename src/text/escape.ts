/**
 * Characters that have ink, and the plain space. Whatever else Unicode has, or will have, steers a terminal
 * or hides.
 */
const shown = String.raw`[\p{L}\p{M}\p{N}\p{P}\p{S}\x20]--\p{Default_Ignorable_Code_Point}--\u2800`;

/**
 * A mark belongs to a letter before it: at the start it would sit on what we write there, and a pile of them
 * covers other lines.
 */
const stray = String.raw`(?<=^|\x20)\p{M}|(?<=\p{M}{4})\p{M}`;

/** A backslash that would read as one of our own escapes. */
const likeOurs = String.raw`\\(?=u\{)`;

const hidden = new RegExp(`[^[${shown}]]|${stray}|${likeOurs}`, 'gv');

/** `##[name]`, `##vso[…]`, `##teamcity[…]`: CI systems look for these anywhere in a line. */
const serviceMessage = /##(?=[^\s#]*\[)/;

/**
 * Text on one line, with everything invisible shown as `\u{hex}`. Two different texts never look the same by
 * what is invisible.
 */
export function escaped(text: string): string {
  return text.replace(hidden, codePoint);
}

/** Whether a line holds what a CI system would read as a message to itself. */
export function hasServiceMessage(line: string): boolean {
  return serviceMessage.test(line);
}

export function withoutNumberSigns(text: string): string {
  return text.replaceAll('#', codePoint);
}

function codePoint(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}

const hiddenInJson = new RegExp(`[^[${shown}]\\n]`, 'gv');

/**
 * JSON of the same value in which every character that is not seen is written as `\uXXXX`. @param json as
 * `JSON.stringify` writes it
 */
export function printableJson(json: string): string {
  return json
    .replace(hiddenInJson, (character) => [...Array(character.length).keys()].map(unitOf(character)).join(''))
    .replace(/##+/g, (signs) => '\\u0023'.repeat(signs.length));
}

const unitOf = (character: string) => (index: number) =>
  `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`;
