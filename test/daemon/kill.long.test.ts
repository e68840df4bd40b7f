import { expect, test } from 'vitest';
import { openDaemonPlace } from './daemon-place.ts';

const cases = Array.from({ length: 10 }, (_, n) => `case-${n}`);

test('10 runs that another process queued are all reported although the daemon is killed twice on the way', async () => {
  await using at = await openDaemonPlace();
  at.configure();
  await at.queue(cases);
  for (const reports of [2, 5]) {
    const daemon = await at.daemon();
    await at.reported(reports);
    daemon.kill('SIGKILL');
    expect(await daemon.ended).toMatchObject({ signal: 'SIGKILL' });
  }
  // It left its socket behind, too.
  const { exitCode, stderr } = await at.drained();
  expect(exitCode, stderr).toBe(0);
  for (const caseId of cases) {
    const runs = await at.runs(caseId);
    expect(runs).toHaveLength(1);
    expect(runs[0]?.trials?.map(({ status }) => status)).toEqual(['reported']);
    expect(runs[0]?.distribution).toMatchObject({ passed: 1 });
  }
});
