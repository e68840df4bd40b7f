import { describe, expect, test } from 'vitest';
import { runsOf } from './ask.ts';
import { containersOnce } from './containers.ts';
import { inTheMiddle } from './in-the-middle.ts';
import { offsite } from './offsite.ts';
import { openPlace } from './place.ts';

const none = (containers: unknown[]) => containers.length === 0;

describe('offsite run', () => {
  test.each(['SIGINT', 'SIGHUP'] as const)('at %s keeps what was finished, and exits 130', async (name) => {
    using place = openPlace();
    const { running, instance } = await inTheMiddle(place);
    running.kill(name);
    const { exitCode, stdout, stderr } = await running.ended;
    expect(exitCode).toBe(130);
    expect(stdout).toMatch(/^quick · worker +1 +0 +0 +0 +100 %/m);
    expect(stdout).toMatch(/^all +1 +0 +0 +1 +100 %/m);
    expect(stdout).toContain(`\ninterrupted by ${name}: 1 trial finished, 1 left\n`);
    expect(stderr).toContain(`${name}: stopping the trials`);
    expect(stderr).not.toContain('    at ');
    await containersOnce([`offsite.instance=${instance}`], none);
    const runs = await runsOf(place, 'quick', 'slow');
    expect(runs.map(({ trials }) => trials?.map(({ status }) => status))).toEqual([['reported'], ['queued']]);
    // Nobody has looked at the service yet.
    expect((await offsite(place, ['data', 'outbox'])).stdout).toMatch(
      / sent +1 +not seen at the service yet/,
    );
    const sent = await offsite(place, ['data', 'outbox', 'send']);
    expect(sent).toMatchObject({ exitCode: 0, stdout: 'nothing waits to be reported\n' });
  });
});
