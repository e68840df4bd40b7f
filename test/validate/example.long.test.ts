import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { Trial } from '../../src/contract/record.ts';
import { runsOf } from '../cli/ask.ts';
import { offsite } from '../cli/offsite.ts';
import { openPlace } from '../cli/place.ts';

const suiteOf = (example: string) =>
  fileURLToPath(new URL(`../../examples/${example}/suite.yaml`, import.meta.url));
const cases = [
  'module',
  'report',
  'judged',
  'under',
  'in-place',
  'protected',
  'private',
  'no-verdict',
  'marked',
];

test('the validation example comes out as its README says, and the service has what a report may carry', async () => {
  using place = openPlace();
  const ended = await offsite(place, ['run', suiteOf('validation')]);
  expect(ended.stderr).not.toContain('defect');
  const runs = await runsOf(place, ...cases);
  const trials = new Map(
    runs.map((run): [string | undefined, Trial | undefined] => [run.case?.id, run.trials?.[0]]),
  );
  const passed = new Map(
    runs.map(({ case: one, distribution }) => [
      one?.id,
      [distribution?.passed, distribution?.failed, distribution?.voided],
    ]),
  );
  expect(Object.fromEntries(passed)).toEqual({
    module: [1, 0, 0],
    report: [1, 0, 0],
    judged: [1, 0, 0],
    under: [0, 1, 0],
    'in-place': [1, 0, 0],
    protected: [0, 1, 0],
    private: [1, 0, 0],
    'no-verdict': [0, 0, 1],
    marked: [0, 1, 0],
  });
  expect(trials.get('module')?.validations).toMatchObject([
    {
      index: 0,
      name: 'small numbers',
      status: 'passed',
      exitCode: 0,
      input: { text: expect.stringContaining('"2"') },
      output: { text: '6\n' },
    },
    { index: 1, name: 'negative numbers', durationMs: expect.any(Number), startedAt: expect.any(Number) },
    { index: 2, name: 'it is short', logs: [{ at: expect.any(Number), value: { text: '2 lines\n' } }] },
  ]);
  expect(trials.get('report')?.validations).toMatchObject([
    { name: 'adds two', exitCode: 0 },
    { name: 'adds none', exitCode: 0 },
    { name: 'adds fractions', message: 'skip: not asked for' },
  ]);
  const [reply, tone] = trials.get('judged')?.validations ?? [];
  expect(reply).toMatchObject({
    judgment: { score: 0.9, threshold: 0.7, evaluator: 'rubric', model: expect.any(String) },
  });
  expect(reply?.calls).toHaveLength(4);
  expect(reply?.calls?.[0]).toMatchObject({
    output: { text: 'A parcel on Friday.' },
    durationMs: expect.any(Number),
  });
  expect(tone?.judgment).toMatchObject({ choice: 'friendly', reason: expect.any(String) });
  expect(trials.get('under')?.validations?.[0]).toMatchObject({ judgment: { score: 0.1 } });
  expect(trials.get('protected')?.validations).toMatchObject([
    { name: 'protected files', status: 'failed', message: expect.stringContaining('"tests/sum.sh"') },
  ]);
  expect(JSON.stringify(trials.get('private'))).not.toContain('parcel');
  expect(trials.get('private')?.validations).toMatchObject([{ exitCode: 0, durationMs: expect.any(Number) }]);
});

test('the conversation example ends with a reserved table, and with a user who gives up', async () => {
  using place = openPlace();
  await offsite(place, ['run', suiteOf('conversation')]);
  const runs = await runsOf(place, 'table', 'nobody-answers');
  expect(runs.map(({ distribution }) => distribution)).toMatchObject([
    { passed: 1, failed: 0, voided: 0 },
    { passed: 0, failed: 1, voided: 0 },
  ]);
  // Of agent and user; the commands are the agent's.
  expect(runs.map(({ trials }) => trials?.[0]?.trajectory?.map(({ command }) => command))).toEqual([
    ["echo 'friday 4' > reservations.txt"],
    [],
  ]);
});
