import { expect, test } from 'vitest';
import { openDaemonPlace } from './daemon-place.ts';

test('--once runs and reports what another process has queued, and ends', async () => {
  await using at = await openDaemonPlace();
  at.configure();
  await at.queue(['a', 'b', 'c'], { trials: 2 });
  const { exitCode, stderr } = await at.drained();
  expect(exitCode, stderr).toBe(0);
  for (const caseId of ['a', 'b', 'c']) {
    const [run] = await at.runs(caseId);
    expect(run?.trials?.map(({ status }) => status)).toEqual(['reported', 'reported']);
    expect(run?.distribution).toMatchObject({ passed: 2 });
  }
  const asked = at.service.asked.filter((operation) => operation === 'evals.reportTrial');
  expect(asked).toHaveLength(6);
});
