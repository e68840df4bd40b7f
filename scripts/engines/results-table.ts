import { engineChecks } from './checks.ts';
import type { EngineResult } from './results.ts';

/** The table is between these two lines of a page. */
const begin = '<!-- engines: written by `npm run generate` from test/engines/results/ -->';
const end = '<!-- end of engines -->';

/** The columns of the short table: what every engine must do. */
const shortChecks = ['conformance', 'kill -9', 'containment'];

/** The page with the whole table and its notes in its place. Throws if the page has no place for it. */
export function withResults(page: string, results: readonly EngineResult[]): string {
  const checks = engineChecks
    .map(({ name }) => name)
    .filter((name) => results.some((one) => one.checks[name]));
  const notes = results.flatMap(({ name, notes }) => notes.map((note) => `- \`${name}\`: ${note}`));
  const table = tableOf(results, checks, ['storage', 'runtime']);
  return inPlace(page, [table, ...(notes.length > 0 ? [notes.join('\n')] : [])].join('\n\n'));
}

/** The page with the short table in its place. Throws if the page has no place for it. */
export function withShortResults(page: string, results: readonly EngineResult[]): string {
  return inPlace(page, tableOf(results, shortChecks, []));
}

function inPlace(page: string, text: string): string {
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from === -1 || to < from) throw new Error(`the page has no place for the table of engines: ${begin}`);
  return `${page.slice(0, from + begin.length)}\n\n${text}\n\n${page.slice(to)}`;
}

function tableOf(
  results: readonly EngineResult[],
  checks: readonly string[],
  facts: readonly ('storage' | 'runtime')[],
): string {
  const head = ['engine', 'version', ...facts, ...checks];
  const rows = results.map((one) => [
    `${one.title} (\`${one.name}\`)`,
    one.version,
    ...facts.map((fact) => one[fact]),
    ...checks.map((check) => cell(one.checks[check])),
  ]);
  return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

/** `65`, or `63 of 65`; a dash where the check was not run. */
function cell(count: EngineResult['checks'][string] | undefined): string {
  if (count === undefined) return '–';
  const all = count.passed + count.failed;
  return count.failed === 0 ? String(all) : `**${count.passed} of ${all}**`;
}
