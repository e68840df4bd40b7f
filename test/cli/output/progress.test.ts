import { expect, test } from 'vitest';
import type { BatchEvent, BatchTrial } from '../../../src/agent/run-batch.ts';
import { Activity } from '../../../src/cli/output/activity.ts';
import { Progress, plainDisplay } from '../../../src/cli/output/progress.ts';
import type { Cause } from '../../../src/record/cause.ts';
import type { TrialRecord } from '../../../src/record/trial-record.ts';
import { Output } from '../../../src/text/output.ts';
import { handClock } from '../../agent/test-clock.ts';

function plain() {
  let printed = '';
  const err = new Output({ write: (line) => (printed += line) });
  const activity = new Activity(() => 0);
  const progress = new Progress(activity, plainDisplay({ err, clock: handClock(), lines: () => undefined }));
  return { progress, activity, printed: () => printed.split('\n').slice(0, -1) };
}

const cause: Cause = { kind: 'task', phase: 'prepare', message: 'prepare exited with 4', output: 'why\n' };

function trialOf(id: string, variant: string, ordinal: number): BatchTrial {
  const planned = { request: { id, name: id }, local: {} };
  const run = { id: `${id} ${variant}`, case: planned, variant: { name: variant } };
  return { run, ordinal } as unknown as BatchTrial;
}
function voided(trial: BatchTrial, given: Cause): BatchEvent {
  return {
    kind: 'finished',
    trial,
    result: { verdict: 'void', cause: given, startedAt: 0, finishedAt: 1 } as TrialRecord,
  };
}
function failed(id: string, what: string, given: Cause): BatchEvent {
  return { kind: 'build', build: { id, what, state: { kind: 'failed', cause: given } } };
}

const failure = [
  '  ○ prepare of a failed: the trials that need it are void',
  '      task, in prepare: prepare exited with 4',
  '      │ why',
];

test('a prepare that fails is told once for its case, whatever variants and trials need it', () => {
  const { progress, printed } = plain();
  progress.event(failed('1', 'prepare of a', cause));
  expect(printed()).toEqual(failure);
  // The same prepare after another variant's install, which prints another time.
  const again = { ...cause, output: 'why, again\n' };
  progress.event(failed('2', 'prepare of a', again));
  progress.event(voided(trialOf('a', 'v', 0), cause));
  progress.event(voided(trialOf('a', 'w', 0), again));
  expect(printed()).toEqual([
    ...failure,
    '  ○ a · v #0  void: its prepare failed',
    '  ○ a · w #0  void: its prepare failed',
  ]);
  progress.event(failed('3', 'prepare of b', { ...cause, output: 'another reason' }));
  expect(printed().at(-1)).toBe('      │ another reason');
});

test('an image that a registry may have later is told once, not with each attempt', () => {
  const { progress, printed } = plain();
  const missing = (line: number): Cause => ({
    kind: 'infrastructure',
    phase: 'sandbox',
    message: `suite.yaml:${line}:3: the engine has no image nobody/has:this`,
  });
  progress.event(failed('1', 'image nobody/has:this', missing(1)));
  const trial = trialOf('b', 'v', 0);
  progress.event({ kind: 'retried', trial, attempt: 1, message: missing(2).message } as BatchEvent);
  progress.event(voided(trial, missing(2)));
  expect(printed().at(-1)).toBe('  ○ b · v #0  void: its sandbox failed');
  expect(printed().join()).not.toContain('retrying');
  expect(printed().filter((line) => line.includes('has no image'))).toHaveLength(1);
});

test('a prepare that runs in each trial’s own sandbox is told with the first trial that it fails for', () => {
  const { progress, printed } = plain();
  for (const ordinal of [0, 1]) progress.event(voided(trialOf('a', 'v', ordinal), cause));
  expect(printed()).toEqual([
    '  ○ a · v #0  void  1 ms',
    '      task, in prepare: prepare exited with 4',
    '      │ why',
    '  ○ a · v #1  void: its prepare failed',
  ]);
});

test('a batch is followed from its start to its last report', () => {
  const { progress, activity } = plain();
  const trials = [trialOf('a', 'v', 0), trialOf('a', 'v', 1)] as const;
  progress.event({
    kind: 'started',
    batchId: 'b',
    trials: [...trials],
    before: 0,
    spent: () => ({ tokens: 7, usd: 0 }),
  });
  for (const trial of trials) progress.event({ kind: 'phase', trial, phase: 'harness' });
  progress.event({ kind: 'retried', trial: trials[0], attempt: 1, message: 'again' });
  expect(activity.state()).toMatchObject({
    planned: 2,
    spent: { tokens: 7 },
    running: [{ phase: 'harness' }],
  });
  const result = { verdict: 'passed', startedAt: 0, finishedAt: 1 } as TrialRecord;
  for (const trial of trials) progress.event({ kind: 'finished', trial, result });
  progress.event({ kind: 'step', title: 'delivering the last reports', state: 'begins' });
  expect(activity.state()).toMatchObject({ done: 2, running: [], steps: [{}] });
  progress.event({ kind: 'step', title: 'delivering the last reports', state: 'ends' });
  expect(activity.isBusy).toBe(false);
});

test('a step without a terminal is a line at its beginning and one at its end, also if it fails', async () => {
  const { progress, activity, printed } = plain();
  const pulled = await progress.during('Pulling node', async () => {
    expect(activity.isBusy).toBe(true);
    return 'pulled';
  });
  expect(pulled).toBe('pulled');
  await expect(progress.during('Building', () => Promise.reject(new Error('no room')))).rejects.toThrow(
    'no room',
  );
  expect(printed()).toEqual([
    'Pulling node ...',
    'Pulling node: done in 0 s',
    'Building ...',
    'Building: failed after 0 s',
  ]);
  expect(activity.isBusy).toBe(false);
});
