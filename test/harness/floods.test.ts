import { expect, test } from 'vitest';
import { harnessLines } from '../../src/bounds/sandbox.ts';
import { cliStream } from '../../src/harness/cli-stream.ts';
import { TurnRecord } from '../../src/harness/turn-record.ts';
import { readRecord } from '../../src/validate/record-shape.ts';

/** A stream whose every line is a message of the record. */
function stream() {
  const record = new TurnRecord();
  const reader = cliStream(
    record,
    ({ text }, at) => record.message(String(text), at),
    () => 0,
  );
  const say = (line: object) => reader.push(Buffer.from(`${JSON.stringify(line)}\n`));
  return { record, reader, say };
}

test('of messages without end a bounded number is kept, and the stream is not believed', () => {
  const { record, reader, say } = stream();
  const line = Buffer.from('{"text":"more"}\n'.repeat(1000));
  for (let thousands = 0; thousands <= harnessLines.count.told / 1000; thousands += 1) reader.push(line);
  say({ text: 'the last' });
  expect(record.events).toHaveLength(harnessLines.count.told);
  expect(reader.trouble).toBe('it told more than is kept');
});

test('of messages of a megabyte each no more is kept than there is room for', () => {
  const { record, reader } = stream();
  const line = Buffer.from(`{"text":"${'m'.repeat(300_000)}"}\n`);
  for (let size = 0; size <= harnessLines.bytes.told; size += 300_000) reader.push(line);
  const kept = record.events.reduce((sum, event) => sum + ('text' in event ? event.text.length : 0), 0);
  expect(kept).toBeLessThanOrEqual(harnessLines.bytes.told);
  expect(reader.trouble).toBe('it told more than is kept');
});

/** Three bytes of it come to sixty in the heap. */
const heavy = `{"text":[${'[],'.repeat(10_000_000)}0]}`;

test('a line that would fill the heap once it is parsed is no message, and no record', () => {
  const { record, reader } = stream();
  reader.push(Buffer.from(`${heavy}\n`));
  expect(record.events).toMatchObject([{ kind: 'note' }]);
  expect(reader.trouble).toContain('too many values');
  expect(readRecord(heavy)).toEqual({ problem: expect.stringContaining('too many values') });
});
