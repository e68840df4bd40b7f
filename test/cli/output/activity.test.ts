import { describe, expect, test } from 'vitest';
import { spentParts } from '../../../src/cli/output/activity-text.ts';
import type { Spent } from '../../../src/gateway/budget.ts';
import { elapsed, timeLeft } from '../../../src/text/quantities.ts';
import { activityAt } from './activity-fixture.ts';

const s = 1_000;

describe('what is going on', () => {
  test('names each running trial with its phase and its whole time, the longest first', () => {
    const { activity, runs, pass, ends } = activityAt();
    runs('b', 'sandbox');
    pass(5 * s);
    runs('a', 'sandbox');
    pass(2 * s);
    runs('b', 'verify');
    expect(activity.state().running).toMatchObject([
      { trial: { case: 'b' }, phase: 'verify', forMs: 7 * s },
      { trial: { case: 'a' }, phase: 'sandbox', forMs: 2 * s },
    ]);
    ends('b', 'passed', 7 * s);
    expect(activity.state()).toMatchObject({ done: 1, verdicts: { passed: 1, failed: 0, void: 0 } });
    expect(activity.state().running).toMatchObject([{ trial: { case: 'a' } }]);
  });

  test('has no trial that waits for its next attempt, and counts its time anew', () => {
    const { activity, runs, pass } = activityAt();
    runs('a');
    pass(9 * s);
    activity.update({ kind: 'left', trial: { key: 'a worker #0', case: 'a', which: 'worker #0' } });
    expect(activity.isBusy).toBe(false);
    pass(1 * s);
    runs('a');
    pass(2 * s);
    expect(activity.state().running).toMatchObject([{ forMs: 2 * s }]);
  });

  test('tells of each build for how long it is in its state, until it is built', () => {
    const { activity, builds, pass } = activityAt();
    builds('prepare of a', 'queued');
    pass(60 * s);
    builds('prepare of a', 'running');
    pass(3 * s);
    expect(activity.state().builds).toEqual([{ what: 'prepare of a', state: 'running', forMs: 3 * s }]);
    builds('prepare of a', 'built');
    expect(activity.isBusy).toBe(false);
    builds('prepare of b', 'running');
    builds('prepare of b', 'stopped');
    expect(activity.state().builds).toEqual([]);
  });

  test('tells since when trials wait for something that is down, and why', () => {
    const { activity, pass } = activityAt();
    activity.update({ kind: 'waiting', for: 'the model small', reason: '503' });
    pass(70 * s);
    expect(activity.state().outages).toEqual([{ of: 'the model small', reason: '503', forMs: 70 * s }]);
    activity.update({ kind: 'resumed', for: 'the model small' });
    expect(activity.state().outages).toEqual([]);
  });

  test('sums what models have used, also of a batch whose account is closed', () => {
    const { activity } = activityAt();
    let first: Spent = { tokens: 10, usd: 0.5 };
    activity.update({ kind: 'planned', trials: 1, spent: () => first });
    expect(activity.state().spent).toEqual({ tokens: 10, usd: 0.5 });
    first = { tokens: 30, usd: 1, isPartial: true };
    expect(spentParts(activity.state())).toEqual(['30 tokens', '≥ $1.00']);
    first = { tokens: 0, usd: 0 };
    activity.update({ kind: 'planned', trials: 1, spent: () => ({ tokens: 5, usd: 0 }) });
    expect(activity.state()).toMatchObject({ planned: 2, spent: { tokens: 35, usd: 1, isPartial: true } });
  });
});

describe('the time left', () => {
  const plan = (trials: number) => {
    const at = activityAt();
    at.activity.update({ kind: 'planned', trials });
    return at;
  };

  test('is unknown before a trial has a verdict: a void trial tells nothing', () => {
    const { activity, runs, pass, ends } = plan(4);
    runs('a');
    runs('b');
    pass(60 * s);
    expect(activity.state().leftMs).toBeUndefined();
    ends('a', 'void', 60 * s);
    expect(activity.state().leftMs).toBeUndefined();
    ends('b', 'failed', 60 * s);
    expect(activity.state().leftMs).toBe(60 * s);
  });

  test('is the measured time of the others, divided by how many run at a time', () => {
    const { activity, runs, pass, ends } = plan(40);
    for (const name of 'abcd') runs(name);
    pass(60 * s);
    ends('a', 'passed', 60 * s);
    // 36 trials of 60 s, four at a time; the other three are about to finish.
    expect(activity.state().leftMs).toBe(9 * 60 * s);
  });

  test('lets the trials that run count for what they have left, and the last one for all of it', () => {
    const { activity, runs, pass, ends } = plan(4);
    for (const name of 'ab') runs(name);
    pass(60 * s);
    for (const name of 'ab') ends(name, 'passed', 60 * s);
    for (const name of 'cd') runs(name);
    pass(45 * s);
    expect(activity.state().leftMs).toBe(15 * s);
    ends('c', 'passed', 45 * s);
    expect(activity.state().leftMs).toBeLessThanOrEqual(15 * s);
    pass(60 * s);
    // It takes longer than any before it, so nobody knows.
    expect(activity.state().leftMs).toBeUndefined();
  });

  test('grows where running trials take longer than those that have finished', () => {
    const { activity, runs, pass, ends } = plan(20);
    for (const name of 'abcd') runs(name);
    pass(10 * s);
    ends('a', 'passed', 10 * s);
    const early = activity.state().leftMs ?? 0;
    pass(90 * s);
    expect(activity.state().leftMs).toBeGreaterThan(4 * early);
  });

  test('is unknown during an outage, and an outage does not count as slow work', () => {
    const { activity, runs, pass, ends } = plan(12);
    for (const name of 'ab') runs(name);
    pass(60 * s);
    for (const name of 'ab') ends(name, 'passed', 60 * s);
    const before = activity.state().leftMs;
    expect(before).toBe(300 * s);
    activity.update({ kind: 'waiting', for: 'the engine', reason: 'gone' });
    pass(3_600 * s);
    expect(activity.state().leftMs).toBeUndefined();
    activity.update({ kind: 'resumed', for: 'the engine' });
    expect(activity.state().leftMs).toBe(before);
  });

  test('counts slow starts: environments that must be built first let fewer trials run', () => {
    const { activity, runs, pass, ends } = plan(10);
    runs('a');
    pass(60 * s);
    ends('a', 'passed', 60 * s);
    pass(60 * s);
    runs('b');
    pass(60 * s);
    ends('b', 'passed', 60 * s);
    // Never more than one ran, so it is one at a time.
    expect(activity.state().leftMs).toBe(8 * 60 * s);
  });

  test.each([
    [4 * s, 'a few seconds left'],
    [94 * s, 'about 90 s left'],
    [100 * s, 'about 2 min left'],
    [89.4 * 60 * s, 'about 89 min left'],
    [100 * 60 * s, 'about 1.5 h left'],
  ])('%d ms is printed as "%s"', (ms, printed) => {
    expect(timeLeft(ms)).toBe(printed);
  });
});

test.each([
  [0, '0 s'],
  [59_999, '59 s'],
  [60_000, '1 m 00 s'],
  [3_599_999, '59 m 59 s'],
  [7_500_000, '2 h 05 m'],
])('%d ms in progress is printed as "%s"', (ms, printed) => {
  expect(elapsed(ms)).toBe(printed);
});
