/**
 * Visible characters, and the plain space. All other characters of Unicode, now or in the future, may control
 * a terminal or hide.
 */
const shown = String.raw`[\p{L}\p{M}\p{N}\p{P}\p{S}\x20]--\p{Default_Ignorable_Code_Point}--\u2800`;

/**
 * A combining mark belongs to the letter before it. At the start of a text it would apply to what Offsite
 * writes there, and a stack of marks covers other lines.
 */
const stray = String.raw`(?<=^|\x20)\p{M}|(?<=\p{M}{4})\p{M}`;

/** A backslash that would look like an escape of Offsite. */
const likeOurs = String.raw`\\(?=u\{)`;

const hidden = new RegExp(`[^[${shown}]]|${stray}|${likeOurs}`, 'gv');

/** `##[name]`, `##vso[…]`, `##teamcity[…]`: CI systems look for these anywhere in a line. */
const serviceMessage = /##(?=[^\s#]*\[)/;

/**
 * Text on one line, with everything invisible shown as `\u{hex}`. Two different texts never look the same
 * because of invisible characters.
 */
export function escaped(text: string): string {
  return text.replace(hidden, codePoint);
}

/** Whether a line contains text that a CI system would read as a command. */
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
 * JSON of the same value in which every invisible character is written as `\uXXXX`.
 *
 * @param json as `JSON.stringify` writes it
 */
export function printableJson(json: string): string {
  return json
    .replace(hiddenInJson, (character) => [...Array(character.length).keys()].map(unitOf(character)).join(''))
    .replace(/##+/g, (signs) => '\\u0023'.repeat(signs.length));
}

const unitOf = (character: string) => (index: number) =>
  `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`;

/** Characters that shells read as they are, after the first one. */
const plain = /^[\w./:@%+,=#·-]+$/;

/** A text as one word of a shell's command. */
export function shellWord(word: string): string {
  if (plain.test(word) && !word.startsWith('#') && !word.startsWith('-')) return word;
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
