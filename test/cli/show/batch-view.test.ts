import { expect, test } from 'vitest';
import { batchView, readBatch } from '../../../src/cli/show/batch-view.ts';
import { openTrial } from '../../../src/cli/show/open-trial.ts';
import { lastBatch } from '../../../src/ledger/find.ts';
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
  expect(view()).toMatch(/\n✗ a\/v#0 {2}verify: npm test exited 1: AssertionEr…\n✗ .b c\/v#0. {2}verify/);
  expect(view()).toMatch(/\nsee one: offsite show a\/v#0$/);
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
