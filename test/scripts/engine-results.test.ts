import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { checkOf } from '../../scripts/engines/checks.ts';
import { keptResults } from '../../scripts/engines/results.ts';
import { withResults, withShortResults } from '../../scripts/engines/results-table.ts';
import { engineTable } from '../../scripts/engines/table.ts';

const page = readFileSync(new URL('../../docs/reference/engine-results.md', import.meta.url), 'utf8');
const place =
  '<!-- engines: written by `npm run generate` from test/engines/results/ -->\n<!-- end of engines -->\n';

test('the table of engines is the one of the results (npm run generate)', async () => {
  expect(withResults(page, await keptResults())).toBe(page);
  const guide = readFileSync(new URL('../../docs/engines.md', import.meta.url), 'utf8');
  expect(withShortResults(guide, await keptResults())).toBe(guide);
});

test('each result is of an engine that can be tested with', async () => {
  const names = engineTable.map(({ name }) => name);
  for (const { name } of await keptResults()) expect(names).toContain(name);
});

test('a check that failed somewhere says how much, and one that was not run has a dash', () => {
  const facts = { version: '1', storage: 'overlay2', cgroups: '2', runtime: 'runc' };
  const on = '2026-01-01';
  const table = withResults(place, [
    { name: 'a', title: 'One', ...facts, checks: { engine: { passed: 3, failed: 0, on } }, notes: [] },
    {
      name: 'b',
      title: 'Other',
      ...facts,
      checks: { trials: { passed: 3, failed: 1, on } },
      notes: ['It is slow.'],
    },
  ]);
  expect(table).toContain('| One (`a`) | 1 | overlay2 | runc | 3 | – |');
  expect(table).toContain('| Other (`b`) | 1 | overlay2 | runc | – | **3 of 4** |');
  expect(table).toContain('- `b`: It is slow.');
  expect(() => withResults('# No such place\n', [])).toThrow('no place');
});

test('a test file belongs to the most particular check', () => {
  expect(checkOf('test/engine/conformance.test.ts')).toBe('conformance');
  expect(checkOf('test/engine/hostile/files.test.ts')).toBe('containment');
  expect(checkOf('test/engine/exec.test.ts')).toBe('engine');
  expect(checkOf('test/house.test.ts')).toBeUndefined();
});
