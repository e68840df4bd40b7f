import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { readYamlFile } from '../../src/suite/yaml-file.ts';
import { eachFolder, folder } from '../each-folder.ts';

eachFolder();

function read(text: string): unknown {
  const file = join(folder, 'a.yaml');
  writeFileSync(file, text);
  return readYamlFile(file, z.record(z.string(), z.unknown())).value;
}

const tenfold = [...'abcdefgh'].map(
  (name, n) => `${name}: &${name} [${Array(10).fill(n === 0 ? '1' : `*${'abcdefgh'[n - 1]}`)}]`,
);
const long = `x: &x "${'long '.repeat(200_000)}"\ny: [${Array(100).fill('*x')}]`;

test.each([
  ['an alias of what it stands in', 'a:\n  b: &x\n    - c\n    - *x\n', /a\.yaml:4:7: .*itself/],
  ['one in a key', 'a: &x\n  ? [*x]\n  : 1\n', /a\.yaml:2:6: .*itself/],
  ['aliases that grow tenfold', tenfold.join('\n'), /a\.yaml:\d+:\d+: .*expands/],
  ['aliases of a long text', long, /a\.yaml:2:\d+: .*expands/],
  ['lists in lists', `a: ${'['.repeat(100_000)}`, /a\.yaml:1:\d+: .*deep/],
  ['blocks in blocks', `a:\n ${'- '.repeat(50_000)}x`, /a\.yaml:2:\d+: .*deep/],
  [
    'keys without number',
    Array.from({ length: 300_000 }, (_, n) => `k${n}: 1`).join('\n'),
    /a\.yaml:\d+:\d+: .*more/,
  ],
  ['an unknown anchor', 'a: *gone\n', /a\.yaml:1:4: /],
  [
    'a variable with braces at the very beginning',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: what somebody wrote
    '${A}\nb: { c: d }\n',
    /a\.yaml:1:1: quote a text with braces/,
  ],
  ['a key twice', 'a: 1\nb: 2\na: 3\n', /a\.yaml:3:1: this key is written twice/],
])('%s is a problem at its place', (_, text, where) => {
  const begun = performance.now();
  expect(() => read(text)).toThrow(
    expect.objectContaining({ code: 'BAD_FILE', kind: 'input', message: expect.stringMatching(where) }),
  );
  expect(performance.now() - begun).toBeLessThan(60_000);
});

test('aliases that stand for something of their own are read', () => {
  expect(read('a: &x { n: 1 }\nb: [*x, *x]\nc: &x 2\nd: *x\n')).toEqual({
    a: { n: 1 },
    b: [{ n: 1 }, { n: 1 }],
    c: 2,
    d: 2,
  });
  expect(read(`a: &x 1\nb: [${Array(500).fill('*x')}]`)).toMatchObject({ b: Array(500).fill(1) });
});

test('of very many problems the first are told', () => {
  const file = join(folder, 'b.yaml');
  writeFileSync(file, Array.from({ length: 5_000 }, (_, n) => `k${n}: 1`).join('\n'));
  const refused = () => readYamlFile(file, z.strictObject({}));
  expect(refused).toThrow(/b\.yaml:1:1: k0: unknown key/);
  expect(refused).toThrow(/4,?950 more/);
});
