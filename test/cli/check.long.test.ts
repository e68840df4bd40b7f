import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eachPlace, place } from './each-place.ts';
import { offsite, start } from './offsite.ts';

eachPlace();

test('a check that was stopped goes on with what is left, and grades again what has changed', async () => {
  const caseOf = (id: string, word: string) => ({
    id,
    prepare: `echo wrong > out.txt`,
    solution: `sleep ${id === 'slow' ? '600' : '0'}; echo ${word} > out.txt`,
    verify: `grep -qx ${word} out.txt`,
  });
  const check = place.suite({ cases: [caseOf('quick', 'one'), caseOf('slow', 'two')] });
  const running = start(place, ['check', check]);
  await running.printed(/quick: ok/);
  running.kill('SIGKILL');
  await running.ended;

  // The environment of the slow one is as it was; the quick one is not graded again.
  const suite = (word: string) =>
    place.suite({
      cases: [caseOf('quick', word), { ...caseOf('slow', 'two'), solution: 'echo two > out.txt' }],
    });
  const kept = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await offsite(place, ['check', ...args, '--json']);
    expect(exitCode, stderr).toBe(0);
    const { cases } = JSON.parse(stdout) as { cases: { id: string; states: { kept?: true }[] }[] };
    return Object.fromEntries(
      cases.map(({ id, states }) => [id, states.map((state) => state.kept === true)]),
    );
  };
  expect((await kept(suite('one'))).quick).toEqual([true, true]);
  const all = { quick: [true, true], slow: [true, true] };
  expect(await kept(suite('one'))).toEqual(all);
  expect(await kept(suite('three'))).toEqual({ ...all, quick: [false, false] });
  const none = { quick: [false, false], slow: [false, false] };
  expect(await kept(suite('one'), '--again')).toEqual(none);
  const ended = await offsite(place, ['check', suite('one')]);
  expect(ended.stderr).toContain('4 of 4 results are from earlier checks; --again grades them again');
  expect(ended.stdout).toMatch(/quick\s+solved\s+passed/);
});

test('what judges give in each state is told, and another script of a judge is another judge', async () => {
  const script = (score: number) =>
    place.write(
      'judge.yaml',
      JSON.stringify({
        turns: [
          { when: { user: 'a fine text' }, repeat: true, text: JSON.stringify({ reason: 'Fine.', score }) },
        ],
        otherwise: '{"reason": "Nothing is there.", "score": 0.1}',
      }),
    );
  script(0.9);
  const source = `import { readFileSync } from 'node:fs';
import { validate } from 'offsite/validator';
validate('the text', ({ judge }) => judge({ rubric: 'Is it fine?', material: readFileSync('text', 'utf8'), threshold: 0.7 }));
`;
  const validated = {
    validator: { source },
    prepare: 'echo none > text',
    solution: 'echo a fine text > text',
  };
  const file = place.suite({
    config: { models: { strict: { scripted: 'judge.yaml' } } },
    cases: [{ id: 'a', ...validated }],
    judges: ['strict'],
  });
  const good = await offsite(place, ['check', file]);
  expect(good.exitCode, good.stderr).toBe(0);
  expect(good.stdout).toContain('a, judgment "the text": untouched 0.1 < 0.7, solved 0.9 ≥ 0.7');
  expect(good.stderr).toMatch(/^models used \S+ tokens$/m);
  const kept = await offsite(place, ['check', file]);
  expect(kept.stderr).toContain('2 of 2 results are from earlier checks');
  expect(kept.stderr).not.toContain('models used');
  script(0.5);
  const changed = await offsite(place, ['check', file]);
  expect(changed.exitCode, changed.stderr).toBe(1);
  expect(changed.stdout).toContain('FAILS ALTHOUGH SOLVED');
  // A script that no question fits, and one that gives everything the best score.
  place.write('judge.yaml', JSON.stringify({ otherwise: '{"reason": "Nothing is there.", "score": 0.1}' }));
  const lost = await offsite(place, ['check', file]);
  expect(lost.stdout + lost.stderr).toContain('a: no turn of the script of strict fits what it was asked');
  place.write('judge.yaml', JSON.stringify({ fillForms: true }));
  expect((await offsite(place, ['check', file])).stdout).toContain('PASSES UNTOUCHED');
});

test('a case that uses up its time has no verdict, wherever it is told, and is not kept', async () => {
  const quick = { id: 'quick', solution: 'touch done', verify: 'test -e done' };
  const suite = place.suite({ cases: [quick, { ...quick, id: 'slow', verify: 'sleep 600' }] });
  expect(await offsite(place, ['check', suite, '--include', 'quick'])).toMatchObject({ exitCode: 0 });
  const junit = join(place.folder, 'check.xml');
  // What is kept takes no time of the case.
  const limited = ['check', suite, '--case-timeout', '1s', '--junit', junit];
  const ended = await offsite(place, limited);
  expect(ended.exitCode, ended.stderr).toBe(3);
  const why = 'NO VERDICT: the time of the case, 1.0 s (--case-timeout), was used up';
  expect(ended.stdout).toMatch(/\n1 of 2 cases has no verdict: slow\s*$/);
  expect(ended.stderr).toContain('slow: NO VERDICT\n');
  expect(ended.stdout).toContain(`slow   untouched  void     ${why} `);
  const xml = readFileSync(junit, 'utf8');
  expect(xml).toMatch(/<testsuite name="slow" tests="2" failures="0" errors="2" skipped="0">/);
  expect(xml).toContain(`<error message="${why} `);
  expect(xml).toContain('type="timeout"');

  const { exitCode, stdout } = await offsite(place, [...limited, '--json']);
  expect(exitCode).toBe(3);
  expect(JSON.parse(stdout).cases).toMatchObject([
    { id: 'quick', states: [{ kept: true }, { kept: true }] },
    { id: 'slow', states: [{ verdicts: ['void'], timedOut: true }, { timedOut: true }] },
  ]);
  expect(stdout.match(/"kept"/g)).toHaveLength(2);
});

test('a run says which of its cases the last check called not sound, unless they have changed since', async () => {
  const suite = (verify: string) =>
    place.suite({
      cases: [
        { id: 'good', verify: 'test -e done', solution: 'touch done', variables: { act: 'touch done' } },
        { id: 'bad', verify, solution: 'touch done', variables: { act: 'touch done' } },
      ],
    });
  const words = 'the last check called these cases not sound: bad; `offsite check` says why';
  const before = await offsite(place, ['run', suite('true')]);
  expect(before.stderr).not.toContain('not sound');
  expect((await offsite(place, ['check', suite('true')])).exitCode).toBe(1);
  const run = await offsite(place, ['run', suite('true')]);
  expect(run.exitCode, run.stderr).toBe(0);
  expect(run.stderr.indexOf(words), run.stderr).toBeGreaterThan(-1);
  expect(run.stderr.indexOf(words)).toBeLessThan(run.stderr.indexOf('2 trials'));
  const changed = await offsite(place, ['run', suite('test -e done')]);
  expect(changed.stderr).not.toContain('not sound');
});
