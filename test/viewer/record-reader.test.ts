import { expect, test } from 'vitest';
import { RecordReader } from '../../src/viewer/read/record-reader.ts';

import { ledgerOf, swelling } from './swollen-ledger.ts';

test('the records that were used last are kept, as many as fit, and the last one in any case', async () => {
  const { ledger, hashes } = await ledgerOf(3, (ordinal) => swelling(ordinal, 1_000));
  const [one = '', two = '', three = ''] = hashes;
  const weighing = new RecordReader(ledger);
  weighing.read(one);
  const reader = new RecordReader(ledger, weighing.weight * 2.5);
  const [first, second] = [reader.read(one), reader.read(two)];
  expect(reader.read(one)).toBe(first);
  reader.read(three);
  expect(reader.read(one)).toBe(first);
  expect(reader.read(two)).not.toBe(second);
  const small = new RecordReader(ledger, 0);
  const last = small.read(one);
  expect(small.read(one)).toBe(last);
  small.read(two);
  expect(small.read(one)).not.toBe(last);
});
