import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { cassettes } from '../../../src/bounds/suite.ts';
import type { Cassette } from '../../../src/gateway/replay/cassette.ts';
import { cassetteLines, readCassette } from '../../../src/gateway/replay/cassette-file.ts';
import { asks, called, cassette, recorded, returned, said, trial } from './recorded.ts';

const folder = mkdtempSync(join(tmpdir(), 'offsite-cassette-'));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;

function written(...lines: (object | string)[]): string {
  files += 1;
  const file = join(folder, `${files}.jsonl`);
  writeFileSync(
    file,
    lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n'),
  );
  return file;
}

function read(...lines: (object | string)[]): Cassette {
  return readCassette(written(...lines));
}

const shown = ({ trials }: Cassette) =>
  trials.map(({ label, exchanges }) => ({
    label,
    exchanges: exchanges().map(({ answer, ...one }) => ({ ...one, answer: answer().body.toString() })),
  }));

const conversation = asks(said('Count.'), called('c1', 'wc'), returned('c1', '9'));
const two = cassette(
  trial({}, recorded('go', asks(said('Count.'))), recorded('nine ☃', conversation, { role: 'judge' })),
  trial({ ordinal: 1 }, recorded('go', conversation, { wire: 'gemini', from: 'openai-chat' })),
);

const head = { cassette: 1, of: 'batch', suite: 'suite' };
const label = { trial: { case: 'one', variant: 'codex', ordinal: 0 } };
const exchange = {
  number: 1,
  role: 'agent',
  model: 'big',
  wire: 'openai-chat',
  context: [],
  tools: [],
  turns: [],
  options: 0,
  status: 200,
  answer: 0,
};

test('a cassette is the same after it was written and read', () => {
  expect(shown(read(...cassetteLines(two, 'suite')))).toEqual(shown(two));
});

test('each text stands in the file once', () => {
  const texts = [...cassetteLines(two, 'suite')].flatMap((line) => ('text' in line ? [line.text] : []));
  expect(texts).toEqual([...new Set(texts)]);
});

test.each<[string, (object | string)[], string]>([
  ['an empty file', [], 'it is empty'],
  ['another version', [{ ...head, cassette: 2 }], '1: it is not a line of a cassette of version 1'],
  [
    'a file that begins with something else',
    [{ text: 'a' }],
    '1: the first line must be the header of the cassette',
  ],
  ['a second head', [head, head], '2: a second cassette begins'],
  ['what is not JSON', [head, '{'], '2: '],
  ['a member that nobody knows', [head, { ...label, path: '/etc/passwd' }], '2: it is not a line'],
  ['an exchange before a trial', [head, { text: 'a' }, { exchange }], '3: an exchange comes before'],
  [
    'a text that comes later',
    [head, label, { exchange }, { text: 'a' }],
    '3: text 0 is not defined before this line',
  ],
  [
    'a negative text',
    [head, label, { text: 'a' }, { exchange: { ...exchange, answer: -1 } }],
    '4: it is not',
  ],
  ['a wire that nobody speaks', [head, label, { exchange: { ...exchange, wire: 'x' } }], '3: it is not'],
  ['nested arrays', [head, `{"text":${'['.repeat(5000)}${']'.repeat(5000)}}`], '2: '],
])('%s is refused, with its line', (_what, lines, message) => {
  expect(() => read(...lines)).toThrow(message);
});

test('a text that a request repeats until it is too large is refused before it is put together', () => {
  const text = 'x'.repeat(1_000_000);
  const times = Math.ceil(cassettes.bytes.request / text.length) + 1;
  const large = { ...exchange, context: Array.from({ length: times }, () => 0) };
  expect(() => read(head, label, { text }, { exchange: large })).toThrow('its requests are too large');
});

test('only a regular file is read', () => {
  symlinkSync('/dev/zero', join(folder, 'zero'));
  expect(() => readCassette(join(folder, 'zero'))).toThrow('only regular files can be read');
  expect(() => readCassette(folder)).toThrow('it is a folder');
});

test('names in a cassette are only compared', () => {
  const named = {
    trial: { ...label.trial, case: '__proto__', variant: '../../etc' },
  };
  const { trials } = read(head, named, { text: '{}' }, { exchange });
  expect(trials[0]?.label).toEqual(named.trial);
});
