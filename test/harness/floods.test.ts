import { expect, test } from 'vitest';
import { cliStream } from '../../src/harness/cli-stream.ts';
import { TurnRecord } from '../../src/harness/turn-record.ts';
import { readRecord } from '../../src/validate/sandboxed-records.ts';

/** A stream whose every line is a message of the record. */
function stream() {
  const record = new TurnRecord(0);
  const reader = cliStream(
    record,
    ({ text }, at) => record.message(String(text), at),
    () => 0,
  );
  return { record, reader };
}

/** Three bytes of it come to sixty in the heap. */
const heavy = `{"text":[${'[],'.repeat(10_000_000)}0]}`;

test('a line that would fill the heap once it is parsed is no message, and no record', () => {
  const { record, reader } = stream();
  reader.push(Buffer.from(`${heavy}\n`));
  expect(record.events).toEqual([]);
  expect(record.isWhole).toBe(false);
  expect(readRecord(heavy)).toEqual({ problem: expect.stringContaining('too many values') });
});
