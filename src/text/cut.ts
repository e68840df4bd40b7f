/** The first characters of a text, and how many there are. */
export function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  return `${text.slice(0, limit).replace(/[\ud800-\udbff]$/, '')}… (${text.length} characters)`;
}
