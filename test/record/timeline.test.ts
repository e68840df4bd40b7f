import { expect, test } from 'vitest';
import { timelineOf } from '../../src/record/timeline.ts';
import { recordVersion, type TrialRecord } from '../../src/record/trial-record.ts';
import { stepUsage } from '../../src/record/usage.ts';
import { valueAt } from '../../src/viewer/model/cut-record.ts';
import { entryDetails } from '../../src/viewer/model/entry.ts';

test('a timeline holds everything in the order it began, with what failed', () => {
  const command = (name: string, startedAtMillis: number | undefined, exitCode: number) => ({
    _tag: 'command' as const,
    command: name,
    exitCode,
    ...(startedAtMillis !== undefined && { startedAtMillis, finishedAtMillis: startedAtMillis + 5 }),
  });
  const entries = timelineOf({
    version: recordVersion,
    verdict: 'failed',
    startedAt: 0,
    finishedAt: 100,
    phases: [
      { name: 'sandbox', startedAt: 0, durationMs: 10 },
      { name: 'harness', startedAt: 10, durationMs: 50 },
      { name: 'verify', startedAt: 60, durationMs: 40 },
    ],
    trajectory: [command('first', 20, 0), command('untimed', undefined, 1), command('last', 40, 0)],
    events: [
      { kind: 'message', at: 30, text: '\n  two\nlines' },
      { kind: 'tool', at: 35, name: 'read', input: {}, failed: true },
    ],
    verifySteps: [{ command: 'test -f a \\\n  -a -f b', exitCode: 1, output: '', outputTruncated: false }],
    validations: [{ id: 'v', index: 0, name: 'works', exitCode: 0, startedAt: 90, durationMs: 3 }],
    modelUnmeasured: false,
  });
  expect(entries.map(({ kind, at, title, failed }) => [kind, at, title, failed])).toEqual([
    ['phase', 0, 'sandbox', false],
    ['phase', 10, 'harness', false],
    ['command', 20, 'first', false],
    ['command', 20, 'untimed', true],
    ['message', 30, 'two', false],
    ['tool', 35, 'read', true],
    ['command', 40, 'last', false],
    ['phase', 60, 'verify', false],
    ['verify', 60, 'test -f a \\', true],
    ['validation', 90, 'works', false],
  ]);
  expect(entries.find(({ title }) => title === 'works')?.until).toBe(93);
});

test('commands that only the model traffic shows stand for those that a harness does not report', () => {
  const entry = (command: string) => ({ _tag: 'command' as const, command, startedAtMillis: 1 });
  const record: TrialRecord = {
    version: recordVersion,
    verdict: 'passed',
    startedAt: 0,
    finishedAt: 9,
    phases: [],
    modelUnmeasured: false,
    trajectory: [entry('./run')],
    derivedTrajectory: [entry('ls')],
    harnessTellsCommands: false,
  };
  expect(timelineOf(record).map(({ title }) => title)).toEqual(['ls']);
});

test('the phases of steps say which step, and only that of a failed step has failed', () => {
  const cause = { kind: 'agent' as const, phase: 'harness' as const, message: 'too slow' };
  const record: TrialRecord = {
    version: recordVersion,
    verdict: 'failed',
    cause: { ...cause, message: 'step two: too slow' },
    startedAt: 0,
    finishedAt: 40,
    modelUnmeasured: false,
    steps: [
      { name: 'one', startedAt: 0, finishedAt: 10, verdict: 'passed', cause },
      { name: 'two', startedAt: 10, finishedAt: 20, verdict: 'failed', cause },
      { name: 'three' },
    ],
    phases: [
      { name: 'harness', step: 'one', startedAt: 0, durationMs: 10 },
      { name: 'harness', step: 'two', startedAt: 10, durationMs: 5 },
      { name: 'validate', step: 'two', startedAt: 15, durationMs: 5 },
    ],
  };
  expect(timelineOf(record).map(({ title, failed }) => [title, failed])).toEqual([
    ['harness of one', false],
    ['harness of two', true],
    ['validate of two', false],
  ]);
  const texts = timelineOf(record).map((entry) => entryDetails(record, entry).texts);
  expect(texts).toEqual([[], [{ label: 'Failure', pointer: '/steps/1/cause/message' }], []]);
  expect(valueAt(record, '/steps/1/cause/message')).toBe('too slow');
});

test('a refused request does not hide what the others of a step used', () => {
  const exchange = { role: 'agent' as const, model: 'm', wire: 'openai-chat', path: '/', streamed: false };
  const sizes = { failedTries: [], requestBytes: 1, responseBytes: 1, finishedAt: 6 };
  const of = (status: number, usage: { totalTokens?: number }) => ({
    ...exchange,
    ...sizes,
    startedAt: 5,
    status,
    usage,
  });
  const account = { connections: [], usage: [], modelMs: 1, agent: { acted: true } };
  const used = (exchanges: ReturnType<typeof of>[]) =>
    stepUsage({ models: { ...account, exchanges } }, { startedAt: 0, finishedAt: 10 }).totalTokens;
  expect(used([of(200, { totalTokens: 7 }), of(429, {})])).toBe(7);
  expect(used([of(200, { totalTokens: 7 }), of(200, {})])).toBeUndefined();
});
