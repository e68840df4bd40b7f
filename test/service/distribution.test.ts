import fc from 'fast-check';
import { expect, test } from 'vitest';
import { distributionOf, type EndedTrial, reportedCosts } from '../../src/service/record/costs.ts';

const ended = (verdict: EndedTrial['verdict'], commands?: number, costUsd?: number): EndedTrial => ({
  verdict,
  commands,
  costUsd,
  endedAt: 0,
});

test('void trials count neither as passed nor as failed', () => {
  expect(distributionOf(4, [ended('passed'), ended('void'), ended('void')])).toEqual({
    trials: 4,
    scored: 1,
    passed: 1,
    failed: 0,
    voided: 2,
    passRate: 1,
  });
});

test('trials that agree are deterministic, and one alone is not called so', () => {
  const of = (...verdicts: EndedTrial['verdict'][]) =>
    distributionOf(
      verdicts.length,
      verdicts.map((verdict) => ended(verdict)),
    ).deterministic;
  expect(of('passed', 'passed')).toBe(true);
  expect(of('failed', 'failed', 'void')).toBe(true);
  expect(of('passed', 'failed')).toBe(false);
  expect(of('passed', 'void')).toBeUndefined();
});

test('commands are counted over the trials that counted them', () => {
  const of = (...counts: (number | undefined)[]) => {
    const { commandMin, commandMedian, commandMax } = distributionOf(
      counts.length,
      counts.map((count) => ended('passed', count)),
    );
    return [commandMin, commandMedian, commandMax];
  };
  expect(of(10, 2, 9)).toEqual([2, 9, 10]);
  expect(of(10, 2, undefined, 4, 1)).toEqual([1, 3, 10]);
  expect(of(undefined)).toEqual([undefined, undefined, undefined]);
});

test('commands of void trials do not count, because their work was cut off', () => {
  expect(distributionOf(3, [ended('void', 1), ended('passed', 8), ended('failed', 6)])).toMatchObject({
    commandMin: 6,
    commandMedian: 7,
    commandMax: 8,
  });
  expect(distributionOf(1, [ended('void', 1)])).not.toHaveProperty('commandMin');
});

test('costs are the sum of what was told, and say so when some trial told none', () => {
  expect(reportedCosts([ended('passed', 1, 0.5), ended('void', 1, 0.25)])).toMatchObject({
    estimatedEquivalentUsd: 0.75,
    incomplete: false,
  });
  expect(reportedCosts([ended('passed', 1, 0.5), ended('failed')])).toMatchObject({ incomplete: true });
  expect(reportedCosts([ended('passed')])).toBeUndefined();
});

test('whatever the trials are, the numbers agree with each other and JSON can say them', () => {
  const number = fc.option(fc.oneof(fc.integer(), fc.constantFrom(1.7e308, -1.7e308)), { nil: undefined });
  const trial = fc.record({
    verdict: fc.constantFrom('passed' as const, 'failed' as const, 'void' as const),
    commands: number,
    costUsd: number,
    endedAt: fc.nat(),
  });
  fc.assert(
    fc.property(fc.array(trial, { maxLength: 10 }), (trials) => {
      const found = distributionOf(10, trials);
      expect(found.passed + found.failed).toBe(found.scored);
      expect(found.scored + found.voided).toBe(trials.length);
      if (found.passRate !== undefined) expect(found.passRate).toBe(found.passed / found.scored);
      for (const value of Object.values({ ...found, ...reportedCosts(trials) })) {
        if (typeof value === 'number') expect(Number.isFinite(value)).toBe(true);
      }
      if (found.commandMedian !== undefined) {
        expect(found.commandMedian).toBeGreaterThanOrEqual(found.commandMin ?? Number.NaN);
        expect(found.commandMedian).toBeLessThanOrEqual(found.commandMax ?? Number.NaN);
      }
    }),
  );
});
