/** Characters that shells read as they are, after the first one. */
const plain = /^[\w./:@%+,=#·-]+$/;

/** A text as one word of a shell's command. */
export function shellWord(word: string): string {
  if (plain.test(word) && !word.startsWith('#') && !word.startsWith('-')) return word;
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
