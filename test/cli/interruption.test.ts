import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { runsOf } from './ask.ts';
import { containersOnce } from './containers.ts';
import { inTheMiddle } from './in-the-middle.ts';
import { offsite, start } from './offsite.ts';
import { openPlace, type Place } from './place.ts';

/** The files of an interrupted run: they say of each trial what is known. */
function expectFiles(place: Place, signal: string): void {
  const junit = readFileSync(join(place.folder, 'junit.xml'), 'utf8');
  expect(junit).toMatch(/^<testsuites name="batch \S+" tests="2" failures="0" errors="0" skipped="1"/m);
  expect(junit).toMatch(/classname="quick.worker" name="trial 0"/);
  const skipped = `<skipped message="has no result: interrupted by ${signal}"/>`;
  expect(junit.replaceAll(/\s*\n\s*/g, '')).toMatch(
    new RegExp(`classname="slow.worker" name="trial 0" time="0.000">${skipped}`),
  );
}

const none = (containers: unknown[]) => containers.length === 0;

describe.concurrent('offsite run', () => {
  test('at Ctrl-C removes its sandboxes, keeps and reports what was finished, and exits 130', async () => {
    using place = openPlace();
    const { running, instance } = await inTheMiddle(place);
    running.kill('SIGINT');
    const { exitCode, stdout, stderr } = await running.ended;
    expect(exitCode).toBe(130);
    expect(stdout).toMatch(/^quick · worker +1 +0 +0 +0 +100 %/m);
    expect(stdout).toMatch(/^all +1 +0 +0 +1 +100 %/m);
    expect(stdout).toMatch(/^interrupted by SIGINT: 1 trial finished, 1 left$/m);
    expect(stderr).toContain('SIGINT: stopping the trials');
    expect(stderr).not.toContain('    at ');
    await containersOnce([`offsite.instance=${instance}`], none);
    const runs = await runsOf(place, 'quick', 'slow');
    expect(runs.map(({ trials }) => trials?.map(({ status }) => status))).toEqual([['reported'], ['queued']]);
    expect((await offsite(place, ['outbox'])).stdout).toBe('nothing waits to be reported\n');
  });

  test('at SIGTERM writes what there is as JUnit, JSON and a page, and resume writes all of it', async () => {
    using place = openPlace();
    const { running } = await inTheMiddle(place, ['--json', '--junit', 'junit.xml', '--html', 'page.html']);
    running.kill('SIGTERM');
    // A CI system may kill it while it still removes sandboxes.
    const written = vi.waitFor(() => expectFiles(place, 'SIGTERM'), { timeout: 60_000, interval: 10 });
    const first = await Promise.race([written.then(() => 'files'), running.ended.then(() => 'its end')]);
    expect(first).toBe('files');
    const { exitCode, stdout } = await running.ended;
    expect(exitCode).toBe(130);
    const summary = JSON.parse(stdout);
    expect(summary).toMatchObject({
      ...{ passed: 1, failed: 0, void: 0 },
      incomplete: { kind: 'interrupted', why: 'interrupted by SIGTERM', unfinished: 1 },
    });
    expect(summary.runs).toMatchObject([
      { case: 'quick', trials: [{ verdict: 'passed' }] },
      { case: 'slow', trials: [], unfinished: [{ ordinal: 0 }] },
    ]);
    expectFiles(place, 'SIGTERM');
    expect(existsSync(join(place.folder, 'page.html'))).toBe(true);

    const again = start(place, ['resume', '--junit', 'junit.xml']);
    await again.printed(/1 of 2 trials runs now; 1 finished before/);
    await again.printed(/longest: slow/);
    again.kill('SIGINT');
    const ended = await again.ended;
    expect([ended.exitCode, ended.stdout], ended.stderr).toEqual([
      130,
      expect.stringMatching(/^interrupted by SIGINT: 1 trial finished, 1 left$/m),
    ]);
    expectFiles(place, 'SIGINT');
  });
});
