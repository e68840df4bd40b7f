import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import type { OffsiteError } from '../../src/base/offsite-error.ts';
import { shortBatchIds, shortId } from '../../src/ledger/find.ts';
import { findTarget } from '../../src/ledger/find-target.ts';
import { listAttempts } from '../../src/ledger/trial-rows.ts';
import { eachLedger, ledger } from './each-ledger.ts';

let now = 1_000;
eachLedger({ clock: { ...systemClock, now: () => now++ } });

/** A batch with runs `[case, variant]` of two trials each. */
function batch(id: string, runs: [string, string][], service = 'embedded') {
  const { key } = ledger.batches.add({
    service,
    id,
    suite: 'Suite',
    file: undefined,
    runs: runs.map(([caseId, variant], index) => ({
      id: `run_${id.slice(6)}${index}x`,
      taskIndex: index,
      caseId,
      variant,
      caseName: `The ${caseId}`,
    })),
  });
  for (const { key: run } of ledger.batches.runs(key))
    ledger.queue.add([{ key: run, setup: undefined, ordinals: [0, 1] }]);
}

/** What a reference means, in short. */
function meant(reference?: string): string {
  const target = findTarget(ledger.records, reference);
  const run = target.kind === 'batch' ? '' : ` ${target.run.caseId}/${target.run.variant}`;
  return `${target.batch.id}${run}${target.kind === 'trial' ? `#${target.trial.ordinal}` : ''}`;
}

test('without a reference the last batch is meant', () => {
  batch('batch_one', [['a', 'v']]);
  batch('batch_two', [['a', 'v']]);
  expect(meant()).toBe('batch_two');
  expect(meant('one')).toBe('batch_one');
});

test('a run is found by its id, by case and variant, and by its case if it is the only run', () => {
  batch('batch_old', [['a', 'v']]);
  batch('batch_new', [
    ['a', 'v'],
    ['b/c', 'v'],
    ['b/c', 'w w'],
  ]);
  for (const reference of ['a/v', 'a:v', 'a · v', 'a', 'The a', 'run_new0x', 'new0', 'new:a/v'])
    expect(meant(reference), reference).toBe('batch_new a/v');
  for (const reference of ['b/c/w w', 'b/c · w w', 'b/c/w', 'new:b/c/w'])
    expect(meant(reference), reference).toBe('batch_new b/c/w w');
  for (const reference of ['old:a', 'old0', 'run_old0x']) expect(meant(reference)).toBe('batch_old a/v');
  expect(() => meant('b/c')).toThrow(/2 runs of batch_new fit b\/c:\nb\/c\/v\nb\/c\/w w/);
});

test('a variant alone is told from a name that nothing has', () => {
  batch('batch_new', [['trim', 'hasty']]);
  expect(() => meant('hasty')).toThrow(/no run hasty: it is a variant; name the case, too: trim\/hasty$/);
});

test('a trial is found by its ordinal, and by the line that a run prints', () => {
  batch('batch_new', [
    ['a', 'v'],
    ['b', 'v'],
  ]);
  for (const reference of [
    'a/v#1',
    'a#1',
    'new:a/v#1',
    'run_new0x#1',
    '✗ a · v #1  failed  1.9 s',
    'a · v #1',
  ])
    expect(meant(reference), reference).toBe('batch_new a/v#1');
  expect(() => meant('a/v#7')).toThrow(
    expect.objectContaining({ code: 'TRIAL_UNKNOWN', hint: 'It has #0, #1.' }),
  );
  expect(() => meant('#0')).toThrow(/2 runs of batch_new could have the trial #0:\na\/v\nb\/v/);
});

test('names of runs win over ids, and whole names over beginnings', () => {
  batch('batch_ab', [
    ['ab', 'v'],
    ['abc', 'v'],
  ]);
  expect(meant('ab')).toBe('batch_ab ab/v');
  expect(meant('abc')).toBe('batch_ab abc/v');
});

test('a run that the last batch does not have is that of the newest batch that has it', () => {
  batch('batch_one', [['greeting', 'v']]);
  batch('batch_two', [['greeting', 'v']]);
  batch('batch_three', [
    ['greeting', 'v'],
    ['other', 'v'],
  ]);
  batch('batch_four', [['great', 'v']]);
  for (const reference of ['greeting', 'greeting/v', 'The greeting', 'greeti'])
    expect(meant(reference), reference).toBe('batch_three greeting/v');
  expect(meant('greeting/v#1')).toBe('batch_three greeting/v#1');
  expect(findTarget(ledger.records, 'greeting#1').olderToo).toEqual(['batch_two', 'batch_one']);
  expect(meant('gre')).toBe('batch_four great/v');
  expect(findTarget(ledger.records, 'gre').olderToo).toEqual([]);
});

test('for a name that several batches have, the newest is taken and the others are named', () => {
  batch('batch_one', [['greeting', 'v']]);
  batch('batch_two', [['greeting', 'w']]);
  batch('batch_three', [['greeting', 'v']]);
  for (const reference of ['greeting', 'greeting/v#1', 'greet'])
    expect(findTarget(ledger.records, reference)).toMatchObject({
      batch: { id: 'batch_three' },
      olderToo: ['batch_one'],
    });
  expect(findTarget(ledger.records, 'three:greeting').olderToo).toBeUndefined();
});

test('what fits nothing or several things is an error that lists them', () => {
  expect(() => meant()).toThrow(expect.objectContaining({ code: 'BATCH_UNKNOWN' }));
  batch('batch_xy', [['a', 'v']]);
  batch('batch_xyz', [['a', 'v']]);
  for (const reference of ['nothing', '%', 'x_', 'xyz:nothing'])
    expect(() => meant(reference), reference).toThrow(expect.objectContaining({ code: 'REFERENCE_UNKNOWN' }));
  for (const reference of ['nothing:a', 'batch_nothing'])
    expect(() => meant(reference), reference).toThrow(expect.objectContaining({ code: 'BATCH_UNKNOWN' }));
  expect(() => meant('x')).toThrow(/^2 things fit x:\nbatch batch_xyz .*\nbatch batch_xy .*/);
});

test('a part that a reference lacks is named, and a file is sent to the command that takes it', () => {
  batch('batch_xyz', [['a', 'v']]);
  expect(() => meant(':v')).toThrow('":v" names no batch before the colon');
  const hintFor = (reference: string) => {
    try {
      return meant(reference);
    } catch (error) {
      return (error as OffsiteError).hint;
    }
  };
  expect(hintFor(':v')).toBe('Write BATCH:CASE/VARIANT, or CASE/VARIANT of the last batch.');
  expect(hintFor('evals/suite.yaml')).toMatch(/`offsite run`/);
  expect(hintFor('batch.tar.zst')).toMatch(/`offsite audit`/);
  expect(hintFor('nothing')).toMatch(/`offsite data batches`/);
});

test('an id with a typo is told with the one that was probably meant', () => {
  batch('batch_Is8dgn-wG2HM', [['a', 'v']]);
  const suggested = (reference: string) => expect(() => meant(reference), reference);
  suggested('batch_Is8dgn-wG2HN').toThrow('; did you mean "batch_Is8dgn-wG2HM"?');
  suggested('batch_Is8gdn').toThrow('; did you mean "batch_Is8dgn"?');
  suggested('Is8dgm-w:a').toThrow('no batch Is8dgm-w; did you mean "Is8dgn-w"?');
  suggested('batch_somethingelse').toThrow(/no batch batch_somethingelse$/);
});

test('the short id of a batch, which also begins the ids of its runs, means the batch', () => {
  batch('batch_Is8dgn-wG2HM', [
    ['a', 'v'],
    ['b', 'v'],
  ]);
  batch('batch_later', [['a', 'v']]);
  for (const reference of ['Is8d', 'Is8dgn-w', 'batch_Is8dgn-w'])
    expect(meant(reference), reference).toBe('batch_Is8dgn-wG2HM');
  expect(meant('Is8dgn-wG2HM1')).toBe('batch_Is8dgn-wG2HM b/v');
  expect(() => meant('run_Is8d')).toThrow(/^2 things fit run_Is8d:\nrun .*\nrun /);
});

test('short ids are as long as it takes to tell batches apart', () => {
  batch('batch_aaaaaaaaaaaa', []);
  expect(shortBatchIds(ledger.records)('batch_aaaaaaaaaaaa')).toBe('aaaaaaaa');
  batch('batch_aaaaaaaaab', []);
  const short = shortBatchIds(ledger.records);
  expect([short('batch_aaaaaaaaaaaa'), short('batch_aaaaaaaaab')]).toEqual(['aaaaaaaaaa', 'aaaaaaaaab']);
  expect(meant('aaaaaaaaab')).toBe('batch_aaaaaaaaab');
});

test('a short id never looks like an option', () => {
  batch('batch_-lJTrHJEaaaa', [['a', 'v']]);
  const short = shortBatchIds(ledger.records)('batch_-lJTrHJEaaaa');
  expect(short).toBe('batch_-lJTrHJE');
  expect(meant(short)).toBe('batch_-lJTrHJEaaaa');
  expect(shortId('run_-lJTrHJEaaaa0x')).toBe('run_-lJTrHJE');
  expect(meant('run_-lJTrHJE')).toBe('batch_-lJTrHJEaaaa a/v');
});

test('attempts are listed with their causes', async () => {
  batch('batch_one', [['a', 'v']]);
  const target = findTarget(ledger.records, 'a#0');
  const trial = target.kind === 'trial' ? target.trial.key : 0;
  const cause = { kind: 'model', phase: 'harness', message: 'it was down' };
  await ledger.trials.abandonAttempt(ledger.trials.beginAttempt(trial), 'void', cause, { found: 1 });
  ledger.trials.beginAttempt(trial);
  const [first, second] = listAttempts(ledger.records, trial);
  expect(first).toMatchObject({ number: 1, ending: 'void', cause });
  expect(ledger.blobs.readJson(first?.result ?? '')).toEqual({ found: 1 });
  expect(second).toMatchObject({ number: 2, endedAt: undefined, ending: undefined, result: undefined });
});
