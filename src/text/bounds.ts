/** How much of a text from elsewhere is printed. Machine formats have all of it. */
export const bounds = {
  /** Characters of a name or another value within a line. */
  value: 500,
  /** Characters of a line that is a text's own. */
  line: 2_000,
  /** Lines of one text: its first and its last ones. */
  lines: 100,
} as const;

/** The first characters of a text, and how many there are. */
export function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  return `${text.slice(0, limit).replace(/[\ud800-\udbff]$/, '')}… (${text.length} characters)`;
}
