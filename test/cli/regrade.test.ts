import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { offsite } from './offsite.ts';
import { openPlace, type Place } from './place.ts';

const slow = { timeout: 180_000 };
const places: Place[] = [];
afterEach(() => {
  for (const place of places.splice(0)) place[Symbol.dispose]();
});

function place(): Place {
  const opened = openPlace();
  places.push(opened);
  return opened;
}

const cases = (verify: string) => [
  { id: 'greet', variables: { act: 'mkdir d; echo hello > d/greeting; ln -s d link' }, verify },
  { id: 'idle', variables: { act: ':' }, verify: 'test ! -e d' },
];

test('grades what trials left again, with the verify of today, and replaces nothing', slow, async () => {
  const at = place();
  const suite = at.suite({ cases: cases('grep -qx Hello link/greeting') });
  const ran = await offsite(at, ['run', suite, '--json']);
  const first = JSON.parse(ran.stdout);
  expect([first.passed, first.failed, first.void]).toEqual([1, 1, 0]);

  at.suite({ cases: cases('grep -qix Hello link/greeting') });
  const again = await offsite(at, ['regrade', '--json'], { env: {} });
  expect(again.stderr).toBe('');
  expect(again.exitCode).toBe(0);
  const regraded = JSON.parse(again.stdout);
  expect(regraded).toMatchObject({
    graded: 2,
    changed: 1,
    passed: 2,
    leftOut: 0,
    passRate: 1,
    passRateBefore: 0.5,
  });
  expect(regraded.suite).toBe(suite);
  const [greet] = regraded.trials;
  expect(greet).toMatchObject({
    caseId: 'greet',
    changed: true,
    was: { verdict: 'failed' },
    now: { verdict: 'passed' },
    notes: [],
  });

  // As it was planned, it fails as before.
  const planned = await offsite(at, [
    'regrade',
    'greet',
    '--planned',
    '--fail-under',
    '1',
    '--junit',
    join(at.folder, 'j.xml'),
  ]);
  expect(planned.exitCode).toBe(1);
  expect(planned.stdout).toContain('the same');
  expect(readFileSync(join(at.folder, 'j.xml'), 'utf8')).toContain('failures="1"');

  const shown = JSON.parse((await offsite(at, ['show', 'greet#0', '--json'])).stdout);
  expect(shown.verdict).toBe('failed');
  const whole = JSON.parse((await offsite(at, ['show', '--json'])).stdout);
  expect([whole.passed, whole.failed, whole.unreported]).toEqual([1, 1, 0]);
});
