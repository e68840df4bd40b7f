/** The first characters of a text, and its length. */
export function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  return `${text.slice(0, limit).replace(/[\ud800-\udbff]$/, '')}… (${text.length} characters)`;
}
