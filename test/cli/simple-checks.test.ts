import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { TrialRecord } from '../../src/record/trial-record.ts';
import { offsiteHere as offsite } from './offsite.ts';
import { openPlace } from './place.ts';

test('checks and judges of a case hold for a solution, and say what is wrong with other work', async () => {
  using place = openPlace();
  const turn = { when: { user: 'told kindly' }, repeat: true, text: '{"reason": "Kind.", "score": 0.9}' };
  const otherwise = '{"reason": "Not kind.", "score": 0.2}';
  place.write('judge.yaml', JSON.stringify({ turns: [turn], otherwise }));
  const checks = [
    { file: 'out' },
    { file: '{{quoted}}', absent: true },
    { file: 'old.txt', absent: true },
    { file: 'out/text.txt', contains: ['{{word}}', 'kindly'], matches: '^told' },
    { file: 'out/text.txt', equals: 'told kindly of {{word}}' },
    { json: 'out/data.json', at: '/items/1/a~1b', equals: { n: [1, null] } },
    { json: 'out/data.json', at: '/word', equals: '{{word}}' },
    { json: 'out/data.json', at: '/items', matches: '^\\[0,' },
    { json: 'out/more.json', at: '/a', equals: 1 },
    { run: 'cat out/text.txt; exit 3', exitCode: 3, contains: '{{word}}', name: 'it prints the text' },
  ];
  const data = JSON.stringify({ word: 'May', items: [0, { 'a/b': { n: [1, null] } }] });
  const solution = `rm old.txt; mkdir out; printf 'told kindly of May\\n' > out/text.txt; echo '${data}' > out/data.json; echo '{"a":1}' > out/more.json`;
  const suite = place.suite({
    cases: [
      {
        id: 'a',
        prepare: 'touch old.txt',
        variables: {
          word: 'May',
          quoted: '"{',
          act: `mkdir out; echo told by June > out/text.txt; echo '{' > out/data.json`,
        },
        solution,
        checks,
        judge: { rubric: 'Is it kind?', threshold: 0.7, model: 'kind' },
      },
    ],
    config: { models: { kind: { scripted: 'judge.yaml' } } },
  });
  const checked = await offsite(place, ['check', suite]);
  expect(checked.exitCode, checked.stdout + checked.stderr).toBe(0);
  const run = await offsite(place, ['run', suite, '--json']);
  const [trial] = JSON.parse(run.stdout).runs[0].trials;
  const result: TrialRecord = JSON.parse(readFileSync(trial.record.path, 'utf8'));
  expect(result.verdict, JSON.stringify([result.cause, result.validations])).toBe('failed');
  expect(result.validations?.filter(({ error }) => error !== undefined)).toEqual([]);
  const seen = result.validations?.map(({ name, status, message }) => `${name}: ${message ?? status}`);
  expect(seen).toEqual([
    'out exists: passed',
    '"{ is absent: passed',
    expect.stringContaining('old.txt is absent: there is old.txt'),
    expect.stringContaining('out/text.txt does not contain "May"; it has: told by June'),
    expect.stringContaining('out/text.txt equals "told kindly of May": '),
    expect.stringMatching(/^out\/data\.json at \/items\/1\/a~1b .*: out\/data\.json is no JSON/),
    expect.stringMatching(/out\/data\.json is no JSON/),
    expect.stringMatching(/out\/data\.json is no JSON/),
    'out/more.json at /a equals 1: there is no out/more.json',
    expect.stringContaining('it prints the text: the output does not contain "May"; it has: told by June'),
    'judge: passed',
  ]);
  expect(result.judgments).toMatchObject([{ name: 'judge', score: 0.2, threshold: 0.7 }]);
});

test('checks and judges beside tests, and the tests: all must hold', async () => {
  using place = openPlace();
  const turns = [{ when: { user: 'told kindly' }, repeat: true, text: '{"reason": "Kind.", "score": 0.9}' }];
  place.write('judge.yaml', JSON.stringify({ turns, otherwise: '{"reason": "Not kind.", "score": 0.2}' }));
  // The tests remove what the judge reads, so it is asked before.
  place.write('grade.sh', 'grep -qs told told.txt; echo $((1 - $?)) > /logs/reward.txt; rm -f told.txt');
  const graded = (id: string, act: string, where: object) => ({
    id,
    variables: { act },
    solution: 'echo told kindly > told.txt',
    tests: {
      files: { '/tests/grade.sh': 'grade.sh' },
      command: ['bash', '/tests/grade.sh'],
      ...where,
      rewards: { json: '/logs/reward.json', text: '/logs/reward.txt' },
    },
    checks: [{ file: 'told.txt' }],
    judge: { rubric: 'Is it kind?', threshold: 0.7, model: 'kind' },
  });
  const fresh = { in: 'fresh', brings: 'workspace' };
  const suite = place.suite({
    cases: [
      graded('unkind', 'echo told > told.txt', fresh),
      graded('untested', 'echo "toLD kindly" > told.txt', fresh),
      graded('both', 'echo told kindly > told.txt', {}),
    ],
    config: { models: { kind: { scripted: 'judge.yaml' } } },
  });
  // To a check, which runs no agent, the first two are the same.
  const checked = await offsite(place, ['check', suite, '--exclude', 'untested']);
  expect(checked.exitCode, checked.stdout + checked.stderr).toBe(0);
  const run = await offsite(place, ['run', suite, '--json']);
  const results = (JSON.parse(run.stdout).runs as { trials: [{ record: { path: string } }] }[]).map(
    ({ trials: [{ record }] }): TrialRecord & { fingerprint?: object } =>
      JSON.parse(readFileSync(record.path, 'utf8')),
  );
  const seen = results.map(({ verdict, validations = [], judgments = [], cause }) => [
    verdict,
    cause?.message,
    validations.map(({ index, name, status }) => `${index} ${name} ${status}`),
    judgments.map(({ score }) => score),
  ]);
  const both = ['0 told.txt exists passed', '1 judge passed'];
  expect(seen).toEqual([
    ['failed', undefined, [...both, '2 tests passed'], [0.2, 1]],
    ['failed', undefined, [...both, '2 tests failed'], [0.2, 0]],
    ['passed', undefined, [...both, '2 tests passed'], [0.9, 1]],
  ]);
  expect(Object.keys(results[0]?.fingerprint ?? {})).toEqual(expect.arrayContaining(['tests', 'validator']));
});
