import { describe, expect, test } from 'vitest';
import { furtherTrials } from '../../src/stats/further-trials.ts';
import type { CaseVerdicts } from '../../src/stats/pass-rate.ts';
import { randomIndex } from '../../src/stats/repeats.ts';

const verdicts = (id: string, passed: number, failed: number, missing = 0): CaseVerdicts => ({
  id,
  passed,
  failed,
  void: missing,
});
const wanted = { precision: 0.05, maxTrials: 20 };

describe('further trials', () => {
  test('single trials say nothing about noise, so each case gets a second one', () => {
    const cases = [verdicts('a', 1, 0), verdicts('b', 0, 1)];
    expect(furtherTrials(cases, wanted)).toEqual({
      rate: 0.5,
      halfWidth: undefined,
      needed: new Map([
        ['a', 1],
        ['b', 1],
      ]),
      stopped: undefined,
    });
  });

  test('stop when the interval is narrow enough', () => {
    const cases = Array.from({ length: 100 }, (_, n) => verdicts(String(n), n % 2 ? 3 : 0, n % 2 ? 0 : 3));
    const found = furtherTrials(cases, wanted);
    expect(found.halfWidth).toBeLessThan(0.05);
    expect(found).toMatchObject({ rate: 0.5, stopped: 'precise', needed: new Map() });
  });

  test('are the same number for each case, as many as the noise so far asks for', () => {
    const cases = Array.from({ length: 30 }, (_, n) => verdicts(String(n), 1 + (n % 2), 2 - (n % 2)));
    const { needed, stopped } = furtherTrials(cases, wanted);
    expect(stopped).toBeUndefined();
    expect(needed.size).toBe(30);
    expect(new Set(needed.values()).size).toBe(1);
    expect([...needed.values()][0]).toBeGreaterThan(8);
    expect([...needed.values()][0]).toBeLessThan(17);
  });

  test('replace void trials: a case gets as many as it lacks', () => {
    const cases = [
      ...Array.from({ length: 9 }, (_, n) => verdicts(String(n), 2, 2)),
      verdicts('less', 1, 1, 2),
    ];
    const { needed } = furtherTrials(cases, { precision: 0.1, maxTrials: 50 });
    expect((needed.get('less') ?? 0) - (needed.get('0') ?? 0)).toBe(2);
  });

  test('are none for a case whose trials were all void', () => {
    const cases = [verdicts('a', 1, 1), verdicts('broken', 0, 0, 2)];
    expect([...furtherTrials(cases, wanted).needed.keys()]).toEqual(['a']);
    expect(furtherTrials([verdicts('broken', 0, 0, 2)], wanted)).toEqual({
      rate: undefined,
      halfWidth: undefined,
      needed: new Map(),
      stopped: 'cap',
    });
  });

  test('never exceed the cap, void trials included, and say that it stopped them', () => {
    const cases = [verdicts('a', 1, 1, 1), verdicts('b', 2, 2)];
    expect(furtherTrials(cases, { precision: 0.01, maxTrials: 4 }).needed).toEqual(new Map([['a', 1]]));
    const full = furtherTrials([verdicts('a', 2, 1, 1), verdicts('b', 2, 2)], {
      precision: 0.01,
      maxTrials: 4,
    });
    expect(full).toMatchObject({ needed: new Map(), stopped: 'cap' });
  });

  test('of a single case stop too', () => {
    let one = verdicts('a', 1, 0);
    let rounds = 0;
    for (;;) {
      const { needed } = furtherTrials([one], { precision: 0.1, maxTrials: 100 });
      if (needed.size === 0) break;
      one = verdicts('a', one.passed + (needed.get('a') ?? 0), 0);
      rounds++;
    }
    expect(rounds).toBeLessThan(10);
    expect(one.passed).toBeLessThan(100);
    expect(furtherTrials([], wanted)).toMatchObject({ rate: undefined, stopped: 'cap' });
  });
});

test('after looking again and again, the interval still holds the truth about as often as it says', () => {
  const random = randomIndex(11);
  const uniform = () => random(2 ** 31) / 2 ** 31;
  for (const rateOf of [() => 0.9, uniform, () => (uniform() < 0.7 ? 1 : uniform())]) {
    let held = 0;
    for (let n = 0; n < 500; n++) {
      const cases = Array.from({ length: 30 }, (_, id) => ({
        ...verdicts(String(id), 0, 0),
        rate: rateOf(),
      }));
      const run = (one: (typeof cases)[number], trials: number) => {
        for (let trial = 0; trial < trials; trial++) one[uniform() < one.rate ? 'passed' : 'failed']++;
      };
      for (const one of cases) run(one, 1);
      for (;;) {
        const { needed, rate = 0, halfWidth = 1 } = furtherTrials(cases, { precision: 0.05, maxTrials: 100 });
        for (const one of cases) run(one, needed.get(one.id) ?? 0);
        if (needed.size > 0) continue;
        const truth = cases.reduce((sum, one) => sum + one.rate, 0) / cases.length;
        if (Math.abs(rate - truth) <= halfWidth) held++;
        break;
      }
    }
    expect(held / 500).toBeGreaterThanOrEqual(0.9);
  }
});
