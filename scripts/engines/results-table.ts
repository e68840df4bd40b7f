import { engineChecks } from './checks.ts';
import type { EngineResult } from './results.ts';

/** The table is between these two lines of docs/engines.md. */
const begin = '<!-- engines: written by `npm run generate` from test/engines/results/ -->';
const end = '<!-- end of engines -->';

/** The page with the table of these results in its place. Throws if the page has no place for it. */
export function withResults(page: string, results: readonly EngineResult[]): string {
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from === -1 || to < from) throw new Error(`the page has no place for the table of engines: ${begin}`);
  return `${page.slice(0, from + begin.length)}\n\n${tableOf(results)}\n\n${page.slice(to)}`;
}

function tableOf(results: readonly EngineResult[]): string {
  const checks = engineChecks
    .map(({ name }) => name)
    .filter((name) => results.some((one) => one.checks[name]));
  const head = ['engine', 'version', 'storage', 'runtime', ...checks];
  const rows = results.map(({ name, title, version, storage, runtime, checks: counts }) => [
    `${title} (\`${name}\`)`,
    ...[version, storage, runtime],
    ...checks.map((check) => cell(counts[check])),
  ]);
  const table = [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
  const notes = results.flatMap(({ name, notes }) => notes.map((note) => `- \`${name}\`: ${note}`));
  return [table, ...(notes.length > 0 ? [notes.join('\n')] : [])].join('\n\n');
}

/** `65`, or `63 of 65`; a dash where the check was not run. */
function cell(count: EngineResult['checks'][string] | undefined): string {
  if (count === undefined) return '–';
  const all = count.passed + count.failed;
  return count.failed === 0 ? String(all) : `**${count.passed} of ${all}**`;
}
