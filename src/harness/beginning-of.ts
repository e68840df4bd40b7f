/**
 * The first characters of a text. They are a copy: a part of a string keeps the whole string in memory.
 */
export function beginningOf(text: string, characters: number): string {
  return text.length <= characters
    ? text
    : Buffer.from(text.slice(0, characters), 'utf16le').toString('utf16le');
}
