import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ReportedTrial, type TrajectoryEntry } from '../../src/contract/report.ts';
import { recordVersion, type TrialRecord } from '../../src/record/trial-record.ts';
import { busyMs, reportOf } from '../../src/trial/report.ts';

const subject = { caseName: 'A', taskIndex: 1, ordinal: 0, model: 'none', sessionId: 's' };
const empty: TrialRecord = {
  version: recordVersion,
  verdict: 'void',
  startedAt: 1,
  finishedAt: 2,
  phases: [],
  modelUnmeasured: false,
};
const command = (startedAtMillis: number, finishedAtMillis: number): TrajectoryEntry => ({
  _tag: 'command',
  command: 'x',
  exitCode: 0,
  startedAtMillis,
  finishedAtMillis,
});

describe('a report', () => {
  test('of a void trial names every outcome field that does not hold, so that it is not counted as failed', () => {
    const { outcome } = reportOf(empty, subject);
    expect(outcome.passed).toBeUndefined();
    expect(outcome.voidFields).toEqual([
      'passed',
      'commandCount',
      'exitCode',
      'sandboxMs',
      'verifySteps',
      'validations',
      'artifacts',
      'judgments',
      'sandboxId',
    ]);
  });

  test('of commands that printed far too much carries an equal share of each, and says that it was cut', () => {
    const noisy = Array.from({ length: 40 }, () => ({ ...command(1, 2), output: 'x'.repeat(2 ** 20) }));
    const report = reportOf({ ...empty, trajectory: [command(0, 1), ...noisy] }, subject);
    expect(JSON.stringify(report).length).toBeLessThan(5 * 2 ** 20);
    const [, quiet, first] = report.events;
    expect(quiet).toEqual(command(0, 1));
    expect(first).toMatchObject({ outputTruncated: true, output: expect.stringContaining('left out') });
  });

  test('carries what the agent used of its models, and names what some answer did not tell', () => {
    const part = (usage: object, role: 'agent' | 'judge' = 'agent') => ({
      role,
      model: 'm',
      answeredBy: 'm',
      requests: 1,
      usage,
      pricesOf: undefined,
    });
    const known = {
      inputTokens: 10,
      outputTokens: 2,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      totalTokens: 12,
    };
    const usage = [part(known), part({ ...known, costUsd: 1 }), part({ inputTokens: 99 }, 'judge')];
    const agent = { acted: true, modelFailure: undefined };
    const models = { exchanges: [], connections: [], usage, modelMs: 40, failure: undefined, agent };
    const report = reportOf({ ...empty, models }, subject);
    expect(report.usage).toEqual({
      inputTokens: 20,
      outputTokens: 4,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      totalTokens: 24,
    });
    expect(report.outcome.modelMs).toBe(40);
    expect(report.outcome.voidFields?.slice(-1)).toEqual(['usage.costUsd']);
  });

  test('says what was measured and leaves the rest out, never 0', () => {
    const report = reportOf(
      {
        ...empty,
        verdict: 'failed',
        sandboxId: 'c1',
        harness: { ended: 'timed-out', afterMs: 5 },
        trajectory: [command(10, 30)],
        verifySteps: [{ command: 'true', exitCode: 1, output: 'secret', outputTruncated: false }],
        validations: [],
        judgments: [],
        artifacts: [],
        modelUnmeasured: true,
      },
      subject,
    );
    expect(report.outcome).toEqual({
      passed: false,
      commandCount: 1,
      sandboxMs: 20,
      verifySteps: [{ command: 'true', exitCode: 1 }],
      validations: [],
      judgments: [],
      artifacts: [],
      voidFields: ['exitCode', 'modelMs', 'usage'],
    });
    expect(report.usage).toBeUndefined();
    expect(report.events.map(({ _tag }) => _tag)).toEqual(['Started', 'command']);
    expect(ReportedTrial.parse(report)).toEqual(report);
  });
});

test('busy time counts overlapping commands once', () => {
  expect(busyMs([command(0, 10), command(5, 20), command(30, 40), command(31, 32)])).toBe(30);
  expect(busyMs([])).toBe(0);
});

test.each([
  ['began', { startedAtMillis: undefined }],
  ['ended', { finishedAtMillis: undefined }],
])('without the time at which a command %s, the time in the sandbox is not measured', (_, unknown) => {
  const trajectory = [command(0, 10), { ...command(20, 30), ...unknown }];
  const { outcome } = reportOf({ ...empty, trajectory }, subject);
  expect(outcome).not.toHaveProperty('sandboxMs');
  expect(outcome.voidFields).toContain('sandboxMs');
});

test('busy time is never more than the time between first start and last end, nor less than the longest command', () => {
  const interval = fc
    .tuple(fc.nat(1000), fc.nat(1000))
    .map(([a, b]) => command(Math.min(a, b), Math.max(a, b)));
  fc.assert(
    fc.property(fc.array(interval, { minLength: 1 }), (commands) => {
      const starts = commands.map(({ startedAtMillis = 0 }) => startedAtMillis);
      const ends = commands.map(({ finishedAtMillis = 0 }) => finishedAtMillis);
      const longest = Math.max(...commands.map((_, index) => (ends[index] ?? 0) - (starts[index] ?? 0)));
      const busy = busyMs(commands);
      expect(busy).toBeLessThanOrEqual(Math.max(...ends) - Math.min(...starts));
      expect(busy).toBeGreaterThanOrEqual(longest);
    }),
  );
});
