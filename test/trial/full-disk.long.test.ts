import { expect, test } from 'vitest';
import { bench, sharedBench } from './shared-bench.ts';

sharedBench();

test('a harness that fills its disk is stopped for it, and what it did until then is graded', async () => {
  const result = await bench.trial(
    'echo done > result\nhead -c 200m /dev/zero > big; sleep 30',
    // Long enough for another look at the disk.
    { verify: 'sleep 2; grep done result' },
    { disk: 50 * 1024 ** 2 },
  );
  expect(result).toMatchObject({
    verdict: 'passed',
    cause: { kind: 'agent', phase: 'harness', message: expect.stringContaining('wrote more') },
    harness: { ended: 'out-of-disk' },
  });
});
