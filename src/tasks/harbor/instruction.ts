/** Whether a line is a comment of Markdown or of a script that has the word canary. */
function isCanary(line: string): boolean {
  const text = line.trim().toLowerCase();
  if (!text.includes('canary')) return false;
  return text.startsWith('#') || (text.startsWith('<!--') && text.endsWith('-->'));
}

/**
 * The text of an instruction without the comments at its beginning that mark it as part of a benchmark, and
 * without the empty lines after them.
 */
export function withoutCanary(text: string): string {
  const lines = text.split('\n');
  let first = 0;
  for (const [index, line] of lines.entries()) {
    if (isCanary(line)) first = index + 1;
    else if (line.trim() !== '') break;
  }
  if (first === 0) return text;
  while (first < lines.length && lines[first]?.trim() === '') first += 1;
  return lines.slice(first).join('\n');
}
