import { blameTable } from '../../src/trial/blame.ts';

/** The table of who is at fault is between these two lines of a page. */
const begin = '<!-- blame: written by `npm run generate` from src/trial/blame.ts -->';
const end = '<!-- end of blame -->';

/** The page with the table in its place. Throws if the page has no place for it. */
export function withBlameTable(page: string): string {
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from === -1 || to < from) throw new Error(`the page has no place for the table of blame: ${begin}`);
  const rows = blameTable.map(({ when, next, why }) => {
    const seen = Object.entries(when).map(([name, values]) => `${name}: ${values.join(' or ')}`);
    return [seen.join('<br>') || '(anything else)', next, why];
  });
  const head = ['what is known', 'then', 'why'];
  const table = [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
  return `${page.slice(0, from + begin.length)}\n\n${table}\n\n${page.slice(to)}`;
}
