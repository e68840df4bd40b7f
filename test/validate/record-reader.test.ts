import { expect, test } from 'vitest';
import { RecordReader, type SandboxedRecord } from '../../src/validate/sandboxed-records.ts';

function read(...lines: string[]): { records: SandboxedRecord[]; problem: string | undefined } {
  const records: SandboxedRecord[] = [];
  const reader = new RecordReader('nonce', (record) => records.push(record));
  // Cut anywhere, as streams are.
  for (const byte of Buffer.from(lines.map((line) => `${line}\n`).join(''))) reader.push(Buffer.from([byte]));
  return { records, problem: reader.problem };
}

test('records are the lines that begin with the nonce, and all else is text', () => {
  expect(read('{"kind":"end"}', 'nonce {"kind":"begin","name":"ä"}', 'other {"kind":"end"}')).toEqual({
    records: [{ kind: 'begin', name: 'ä' }],
    problem: undefined,
  });
});

test.each([
  ['no JSON', 'nonce {', 'it is not JSON'],
  ['no record', 'nonce null', 'the validator sent an invalid record'],
  ['a record of an unknown kind', 'nonce {"kind":"pass"}', 'kind'],
  ['a record without what it needs', 'nonce {"kind":"validation","name":"a","status":"passed"}', 'startedAt'],
  ['an id that is none', 'nonce {"kind":"end-work","id":"__proto__"}', 'id'],
])('%s ends the reading with a problem, and throws nothing', (_, line, problem) => {
  const seen = read(line, 'nonce {"kind":"end"}');
  expect(seen.records).toEqual([]);
  expect(seen.problem).toContain(problem);
});
