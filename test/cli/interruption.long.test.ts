import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { containersOnce } from './containers.ts';
import { cases, inTheMiddle } from './in-the-middle.ts';
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
      passed: 1,
      failed: 0,
      void: 0,
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

test('offsite audit says how far it is, and what it has found when it is stopped', async () => {
  using place = openPlace();
  const verifies = { quick: 'true', slow: 'sleep 25' };
  const suite = place.suite({ cases: Object.entries(verifies).map(([id, verify]) => ({ id, verify })) });
  const ran = await offsite(place, ['run', suite, '-c', '2']);
  expect(ran.exitCode, ran.stderr).toBe(0);
  const audit = start(place, ['audit', '--level', 'regraded']);
  await audit.printed(/^auditing 2 trials, \d trials? at a time$/m);
  await audit.printed(/^ *1 of 2 done, 1 held, .*running: 1 verify/m);
  audit.kill('SIGTERM');
  const { exitCode, stdout, stderr } = await audit.ended;
  expect(exitCode, stderr).toBe(130);
  expect(stdout).toMatch(/^quick · worker #0 +passed +held +held +held$/m);
  expect(stdout).toMatch(/regraded: 1 of 2 trials\nstopped: interrupted by SIGTERM; 1 trial not audited$/m);
  const shown = await offsite(place, ['show', 'quick']);
  expect(shown.stdout).toContain('regraded');
});
