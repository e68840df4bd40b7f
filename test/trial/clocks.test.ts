import { execFileSync } from 'node:child_process';
import { afterAll, describe, expect, test } from 'vitest';
import { type Clock, steadyClock, systemClock } from '../../src/base/clock.ts';
import { reportOf } from '../../src/trial/report.ts';
import { openTrialBench, validator } from './trial-bench.ts';

const hour = 3_600_000;
const subject = { caseName: 'case', taskIndex: 0, ordinal: 0, model: 'm', sessionId: 's' };

/** A clock that somebody sets while a trial runs. */
const set = { by: 0, at: Number.POSITIVE_INFINITY };
const clock: Clock = {
  ...systemClock,
  now: () => {
    const now = Date.now();
    return now > set.at ? now + set.by : now;
  },
};
const bench = await openTrialBench({ clock });
afterAll(() => bench[Symbol.asyncDispose]());

describe('a clock that is set by hours while a trial runs', () => {
  test('changes no duration', async () => {
    set.at = Date.now() + 500;
    set.by = -2 * hour;
    const before = Date.now();
    const result = await bench.trial('sleep 1', { verify: 'sleep 1' });
    const took = Date.now() - before;
    set.at = Number.POSITIVE_INFINITY;
    expect(result.verdict).toBe('passed');
    expect(result.finishedAt - result.startedAt).toBeGreaterThan(1_900);
    expect(result.finishedAt - result.startedAt).toBeLessThanOrEqual(took + 1);
    for (const { durationMs } of result.phases) {
      expect(durationMs).toBeGreaterThanOrEqual(0);
      expect(durationMs).toBeLessThanOrEqual(took + 1);
    }
    const { sandboxMs, voidFields } = reportOf(result, subject).outcome;
    expect(sandboxMs).toBeGreaterThan(950);
    expect(sandboxMs).toBeLessThanOrEqual(took + 1);
    expect(voidFields).not.toContain('sandboxMs');
    const [step] = result.verifySteps ?? [];
    expect(step?.durationMs).toBeGreaterThan(950);
    expect(step?.durationMs).toBeLessThanOrEqual(took + 1);
    for (const at of [step?.startedAt, result.trajectory?.[0]?.startedAtMillis]) {
      expect(at).toBeGreaterThanOrEqual(result.startedAt);
      expect(at).toBeLessThanOrEqual(result.finishedAt);
    }
  });
});

describe('an engine whose clock is hours off ours', () => {
  test('changes no duration', async () => {
    set.at = 0;
    set.by = 2 * hour;
    const result = await bench.trial('sleep 1', {
      verify: 'sleep 1',
      validator: validator(
        `import { validate } from 'offsite/validator'; validate('late', () => new Promise((done) => setTimeout(done, 300)));`,
      ),
    });
    set.at = Number.POSITIVE_INFINITY;
    expect(result.cause).toBeUndefined();
    const times = [
      ...(result.verifySteps ?? []),
      ...(result.validations ?? []),
      ...(result.trajectory ?? []).map(({ startedAtMillis = 0, finishedAtMillis = 0 }) => ({
        startedAt: startedAtMillis,
        durationMs: finishedAtMillis - startedAtMillis,
      })),
    ];
    expect(times).toHaveLength(3);
    for (const { startedAt = 0, durationMs = 0 } of times) {
      expect(durationMs).toBeGreaterThan(290);
      expect(startedAt).toBeGreaterThanOrEqual(result.startedAt);
      expect(startedAt + durationMs).toBeLessThanOrEqual(result.finishedAt);
    }
  });
});

test('a steady clock only passes, whatever the clock that it began with does', () => {
  let now = 1_000;
  let passed = 5;
  const steady = steadyClock({ ...systemClock, now: () => now, monotonic: () => passed });
  expect(steady.now()).toBe(1_000);
  now = -1;
  passed += 7.4;
  expect(steady.now()).toBe(1_007);
});

test('the clock that nobody can set also goes where no more files may be opened', () => {
  const clock = new URL('../../src/base/clock.ts', import.meta.url).href;
  const program = `
    import { openSync } from 'node:fs';
    import { systemClock } from '${clock}';
    try { for (;;) openSync('/dev/null'); } catch {}
    console.log(systemClock.steady().at > 0);`;
  const limited = 'ulimit -n 200 && exec "$0" --input-type=module -e "$1"';
  expect(execFileSync('sh', ['-c', limited, process.execPath, program], { encoding: 'utf8' })).toBe('true\n');
});
