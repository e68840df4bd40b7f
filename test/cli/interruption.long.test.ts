import { describe, expect, test } from 'vitest';
import { containersOnce } from './containers.ts';
import { cases, inTheMiddle } from './in-the-middle.ts';
import { offsite } from './offsite.ts';
import { openPlace } from './place.ts';

const none = (containers: unknown[]) => containers.length === 0;

describe('offsite run', () => {
  test('that is interrupted is not compared with another batch', async () => {
    using place = openPlace();
    const before = await offsite(place, ['run', place.suite({ cases: cases.slice(0, 1) }), '--json']);
    const { batchId } = JSON.parse(before.stdout);
    const { running } = await inTheMiddle(place, ['--compare-to', batchId]);
    running.kill('SIGINT');
    const { stderr } = await running.ended;
    const note = `not compared with ${batchId}: trials are missing; \`offsite resume\` takes --compare-to as well`;
    expect(stderr).toContain(note);
  });

  test('that was killed leaves sandboxes, which the next run removes', async () => {
    using place = openPlace();
    const { running, instance } = await inTheMiddle(place);
    running.kill('SIGKILL');
    await running.ended;
    const mine = [`offsite.instance=${instance}`];
    const left = await containersOnce(mine, (containers) =>
      containers.some(({ role, state }) => role === 'marker' && state === 'exited'),
    );
    expect(left.map(({ role }) => role).sort()).toEqual(['container', 'container', 'marker']);
    const next = await offsite(place, ['run', place.suite({ cases: [{ id: 'next', verify: 'true' }] })]);
    expect(next.exitCode).toBe(0);
    await containersOnce(mine, none);
  });
});
