import { expect, test } from 'vitest';
import { batchView, readBatch } from '../../../src/cli/show/batch-view.ts';
import { openTrial } from '../../../src/cli/show/open-trial.ts';
import { storyOf } from '../../../src/cli/show/story.ts';
import { lastBatch, listBatches } from '../../../src/ledger/find.ts';
import { batchMarks } from '../../../src/record/batch-marks.ts';
import { plainText } from '../../../src/text/output.ts';
import { failed, keptLedger } from './kept-ledger.ts';

test('a batch lists each trial that did not pass by the name that shows it', async () => {
  using kept = keptLedger();
  await kept.add('batch_one', { a: [failed, {}], 'b c': [{ ...failed }, undefined] });
  const view = () =>
    plainText(
      batchView(readBatch(kept.ledger, lastBatch(kept.ledger.records)), {
        short: 'one',
        isLast: true,
        width: 24,
      }),
    );
  expect(view()).toMatch(/^batch one, Suite, 20.*, 1 trial left, 3 results not seen at the service\n/);
  kept.ledger.records.run("UPDATE batches SET lock = 'at-work'");
  const { lock } = lastBatch(kept.ledger.records);
  {
    using _worker = kept.ledger.takeLock(lock ?? '');
    expect(view(), 'a process works on it').toMatch(/^batch one, Suite, 20[^,]*, running, 1 trial left\n/);
  }
  expect(view()).toMatch(/^batch one, Suite, 20[^,]*, 1 trial left, 3 results/);
  expect(view()).toMatch(/\n✗ a\/v#0 {2}verify: npm test exited 1: AssertionEr…\n✗ .b c\/v#0. {2}verify/);
  expect(view()).toMatch(/\nsee one: offsite show a\/v#0$/);
});

test('a result that lost to another one at the service does not count, and is told as such', async () => {
  using kept = keptLedger();
  const { ledger } = kept;
  await kept.add('batch_one', { a: [failed, {}], b: [{}] });
  for (const { key, caseId, ordinal } of ledger.outbox.pending())
    ledger.outbox.become(key, caseId === 'a' && ordinal === 1 ? 'superseded' : 'delivered');
  const batch = lastBatch(ledger.records);
  const shown = readBatch(ledger, batch);
  expect(shown.summary).toMatchObject({ passed: 1, failed: 1, passRate: 0.5 });
  const view = plainText(batchView(shown, { short: 'one', isLast: true, width: 160 }));
  expect(view).toContain(', 1 trial does not count: the service has another result of it\n');
  expect(view).toContain('\n– a/v#1  passed, does not count');
  expect(plainText(storyOf(openTrial(ledger, 'a#1')))).toContain('This result does not count');
  expect(plainText(storyOf(openTrial(ledger, 'a#0')))).not.toContain('does not count');
  expect(listBatches(ledger.records)).toMatchObject([{ passed: 1, failed: 1, superseded: 1, unreported: 0 }]);
});

test('a batch says how many of its results wait to be reported, and how many never will be', async () => {
  using kept = keptLedger();
  const { records, outbox } = kept.ledger;
  await kept.add('batch_one', { a: [{}, {}, {}, {}] });
  const marks = () => listBatches(records).flatMap(batchMarks);
  expect(marks()).toEqual(['4 results not seen at the service']);
  const [first, second, third, fourth] = outbox.pending().map(({ key }) => key);
  outbox.become(first ?? 0, 'delivered');
  outbox.become(second ?? 0, 'parked');
  outbox.become(fourth ?? 0, 'delivered');
  expect(marks()).toEqual(['2 results not seen at the service']);
  outbox.drop(third ?? 0);
  expect(marks()).toEqual([
    '1 result not seen at the service',
    '1 result never reported: removed from the outbox',
  ]);
});

test('a record that cannot be read is told, and the rest of the batch is shown', async () => {
  using kept = keptLedger();
  await kept.add('batch_one', { a: [failed, {}] });
  const { result = '' } = kept.ledger.queue.ofBatch(1)[0] ?? {};
  await kept.ledger.blobs.remove(result);
  const shown = readBatch(kept.ledger, lastBatch(kept.ledger.records));
  expect(plainText(batchView(shown, { short: 'one', isLast: true, width: 300 }))).toMatch(
    /○ a\/v#0 {2}.*missing/,
  );
  expect(shown.summary).toMatchObject({ passed: 1, failed: 0 });
  expect(() => openTrial(kept.ledger, 'a#0')).toThrow(expect.objectContaining({ code: 'BLOB_MISSING' }));
});
