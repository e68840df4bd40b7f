/**
 * Returns the model's command from what Codex shows: `/bin/bash -lc 'COMMAND'`, quoted for a shell. A text of
 * another form is returned unchanged.
 */
export function innerCommand(shown: string): string {
  const words = shellWords(shown);
  const [shell = '', flag = '', script] = words ?? [];
  const isShell = /(^|\/)(ba|z|da|k)?sh$/.test(shell);
  return isShell && /^-l?c$/.test(flag) && words?.length === 3 && script !== undefined ? script : shown;
}

/**
 * Splits a line into words by the shell's quoting rules, without other shell syntax. Undefined if a quote is
 * not closed.
 */
function shellWords(line: string): string[] | undefined {
  const words: string[] = [];
  let word: string | undefined;
  let at = 0;
  while (at < line.length) {
    const character = line.charAt(at);
    if (character === "'") {
      const end = line.indexOf("'", at + 1);
      if (end === -1) return undefined;
      word = (word ?? '') + line.slice(at + 1, end);
      at = end + 1;
    } else if (character === '"') {
      const quote = doubleQuoted(line, at + 1);
      if (quote === undefined) return undefined;
      word = (word ?? '') + quote.text;
      at = quote.end;
    } else if (character === '\\') {
      word = (word ?? '') + line.charAt(at + 1);
      at += 2;
    } else if (/\s/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
      at += 1;
    } else {
      word = (word ?? '') + character;
      at += 1;
    }
  }
  return word === undefined ? words : [...words, word];
}

/** The text between double quotes from `start`, and the position after the closing quote. */
function doubleQuoted(line: string, start: number): { text: string; end: number } | undefined {
  const [whole, inside] = /((?:[^"\\]|\\[\s\S])*)"/y.exec(line.slice(start)) ?? [];
  if (whole === undefined || inside === undefined) return undefined;
  // Before any other character, a backslash is literal.
  return {
    text: inside.replace(/\\([$`"\\\n])/g, (_, next) => (next === '\n' ? '' : next)),
    end: start + whole.length,
  };
}
