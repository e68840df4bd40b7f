import { readFileSync } from 'node:fs';
import { glob } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

/** The rooms of `src`, as docs/architecture.md lists them: what imports above, what is imported below. */
const rooms = [
  'cli',
  'export',
  'viewer',
  'comparison',
  'agent',
  'service',
  'trial',
  'harness',
  'validate',
  'gateway',
  'base-image',
  'engine',
  'ledger',
  'client',
  'suite',
  'record',
  'contract',
  'redaction',
  'text',
  'stats',
  // The files of `src` itself.
  '.',
  'bounds',
];

function roomOf(path: string): string {
  const [, room = '', ...inside] = path.split('/');
  return inside.length === 0 ? '.' : room;
}

test('imports between rooms point down; biome finds the circles', async () => {
  const upward: string[] = [];
  let count = 0;
  for await (const path of glob('src/**/*.{ts,tsx}')) {
    const imports = readFileSync(path, 'utf8').matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g);
    for (const [, specifier = ''] of imports) {
      const target = join(dirname(path), specifier);
      if (!target.startsWith('src/')) continue;
      count += 1;
      const [from, to] = [roomOf(path), roomOf(target)].map((room) => rooms.indexOf(room)) as [
        number,
        number,
      ];
      if (from === -1 || to === -1 || to < from) upward.push(`${path} imports ${target}`);
    }
  }
  expect(upward).toEqual([]);
  expect(count).toBeGreaterThan(1000);
});
