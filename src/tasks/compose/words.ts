/**
 * The words of a command, as Compose splits them: at spaces, with quotes and backslashes as in a shell. No
 * shell runs the command, so no other character has a special meaning.
 */
export function splitWords(text: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = '';
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at);
    const next = text.charAt(at + 1);
    if (character === '\\' && quote !== "'" && (quote === '' || /["\\]/.test(next))) {
      word = `${word ?? ''}${next}`;
      at += 1;
    } else if (quote !== '') {
      if (character === quote) quote = '';
      else word += character;
    } else if (character === '"' || character === "'") {
      quote = character;
      word ??= '';
    } else if (/\s/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = `${word ?? ''}${character}`;
  }
  if (word !== undefined) words.push(word);
  return words;
}
