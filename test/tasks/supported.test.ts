import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { explanation, Remarks } from '../../src/tasks/supported.ts';

const root = new URL('../../', import.meta.url).pathname;
const read = (path: string) => readFileSync(`${root}${path}`, 'utf8');
const at = { file: 'a', line: 1, column: 1, path: 'key', message: '' };

test('some reader asks for each thing in the table, so that its line decides', () => {
  const source = read('src/tasks/supported.ts');
  const table = source.slice(source.indexOf('const support = {'), source.indexOf('} as const'));
  const features = [...table.matchAll(/^ {2}'?([a-z-]+)'?: /gm)].map(([, feature = '']) => feature);
  const readers = globSync('src/tasks/**/*.ts', { cwd: root, exclude: ['src/tasks/supported.ts'] });
  const code = readers.map(read).join('\n');
  expect(features.length).toBeGreaterThan(40);
  expect(features.filter((feature) => !code.includes(`'${feature}'`))).toEqual([]);
});

test('what is missing is an obstacle, and what differs a note', () => {
  const remarks = new Remarks();
  remarks.uses('gpu', { ...at, message: 'asks for 2' });
  remarks.uses('open-network', at);
  expect(remarks.obstacles).toEqual([
    { ...at, feature: 'gpu', message: 'asks for 2: no GPU can be given to a sandbox' },
  ]);
  expect(remarks.notes).toEqual([{ ...at, kind: 'open-network', message: explanation('open-network') }]);
  expect(explanation('unknown-key')).toMatch(/no such key/);
});

test('many notes of a kind leave room for the first of another', () => {
  const remarks = new Remarks();
  for (let n = 0; n < 1000; n++) remarks.note('unknown-key', at);
  for (let n = 0; n < 1000; n++) remarks.uses('image-entrypoint', at);
  remarks.note('data-set', at);
  expect(remarks.notes.map(({ kind }) => kind)).toEqual([
    ...Array(48).fill('unknown-key'),
    'image-entrypoint',
    'data-set',
  ]);
});
