import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { offsite, start } from './offsite.ts';
import { openPlace, type Place } from './place.ts';

const places: Place[] = [];
afterEach(() => {
  for (const place of places.splice(0)) place[Symbol.dispose]();
});

function place(): Place {
  const opened = openPlace();
  places.push(opened);
  return opened;
}

const cases = (verify: string) => [
  { id: 'greet', variables: { act: 'mkdir d; echo hello > d/greeting; ln -s d link' }, verify },
  { id: 'idle', variables: { act: ':' }, verify: 'test ! -e d' },
];

test('grades what trials left again, with the verify of today, and replaces nothing', async () => {
  const at = place();
  const suite = at.suite({ cases: cases('grep -qx Hello link/greeting') });
  const ran = await offsite(at, ['run', suite, '--json']);
  const first = JSON.parse(ran.stdout);
  expect([first.passed, first.failed, first.void]).toEqual([1, 1, 0]);

  at.suite({ cases: cases('grep -qix Hello link/greeting') });
  const again = await offsite(at, ['trial', 'regrade', '--json']);
  expect(again.stderr).not.toContain('error:');
  expect(again.exitCode).toBe(0);
  const regraded = JSON.parse(again.stdout);
  expect(regraded).toMatchObject({
    graded: 2,
    changed: 1,
    passed: 2,
    leftOut: 0,
    passRate: 1,
    passRateBefore: 0.5,
  });
  expect(regraded.suite).toBe(suite);
  const [greet] = regraded.trials;
  expect(greet).toMatchObject({
    caseId: 'greet',
    changed: true,
    was: { verdict: 'failed' },
    now: { verdict: 'passed' },
    notes: [],
  });

  // As it was planned, it fails as before.
  const planned = await offsite(at, [
    'trial',
    'regrade',
    'greet',
    '--planned',
    '--fail-under',
    '1',
    '--junit',
    join(at.folder, 'j.xml'),
  ]);
  expect(planned.exitCode).toBe(1);
  expect(planned.stdout).toContain('the same');
  expect(readFileSync(join(at.folder, 'j.xml'), 'utf8')).toContain('failures="1"');

  const shown = JSON.parse((await offsite(at, ['show', 'greet#0', '--json'])).stdout);
  expect(shown.verdict).toBe('failed');
  const whole = JSON.parse((await offsite(at, ['show', '--json'])).stdout);
  expect([whole.passed, whole.failed, whole.unreported]).toEqual([1, 1, 0]);
});

test('shows the new grading beside the first one, and the whole workspace in a shell', async () => {
  const at = place();
  const binary = "printf '\\0\\1\\2' > blob; echo hello > greeting";
  const suite = at.suite({
    cases: [{ id: 'one', variables: { act: binary }, verify: 'true\ntest -s missing' }],
  });
  await offsite(at, ['run', suite]);
  at.suite({ cases: [{ id: 'one', variables: { act: binary }, verify: 'true\ntest -s blob' }] });
  const again = await offsite(at, ['trial', 'regrade', 'one#0']);
  expect(again.stdout).toContain('one · worker #0  failed  → passed');
  expect(again.stdout).toContain('1 trial graded again, 1 changed; pass rate 0 % → 100 %');
  const shown = await offsite(at, ['show', 'one#0']);
  expect(shown.stdout).toContain('✗ one · worker #0  failed');
  expect(shown.stdout).toContain('graded again  1 time\n  ✓ passed, was failed');
  expect(shown.stdout).toContain('verify: test -s missing  exit 1 → not there');
  const { gradings } = JSON.parse((await offsite(at, ['show', 'one#0', '--json'])).stdout);
  expect(gradings).toMatchObject([{ verdict: 'passed', suite, failures: [] }]);
  const command = [
    'trial',
    'shell',
    '--data-folder',
    at.dataFolder,
    'one#0',
    '--',
    'cksum',
    'blob',
    'greeting',
  ];
  const shell = await offsite(at, command, { dataFolder: null });
  expect(shell.stdout).toMatch(/^\d+ 3 blob\n\d+ 6 greeting\n$/);
  expect(shell.stderr).not.toContain('not restored');
});

test('leaves out what it cannot grade, and says why, while the others are graded', async () => {
  const at = place();
  const suite = at.suite({ cases: cases('grep -qx Hello link/greeting') });
  await offsite(at, ['run', suite]);
  const other = at.write('other.yaml', readFileSync(suite, 'utf8').replace('id: idle', 'id: another'));
  const again = await offsite(at, ['trial', 'regrade', '--suite', other]);
  expect(again.exitCode).toBe(0);
  expect(again.stdout).toContain('left out 1 trial: the suite has no case idle\n  idle · worker #0');
  expect(again.stdout).toContain(`graded as ${other} says`);
  const missing = await offsite(at, ['trial', 'regrade', '--suite', other, '--only-missing', '--json']);
  expect(JSON.parse(missing.stdout)).toMatchObject({ graded: 0, leftOut: 2 });
  expect(missing.exitCode).toBe(0);

  const freed = await offsite(at, ['data', 'workspaces', '--free', '--json']);
  expect(JSON.parse(freed.stdout)).toMatchObject({ freed: { count: 1 }, kept: { count: 0, bytes: 0 } });
  const gone = await offsite(at, ['trial', 'regrade', 'greet']);
  expect(gone.exitCode).toBe(2);
  expect(gone.stdout).toContain('left out 1 trial: what it left was removed to free disk space');
  const unknown = await offsite(at, ['trial', 'regrade', '--case', 'nope']);
  expect([unknown.exitCode, unknown.stderr]).toEqual([
    2,
    expect.stringContaining('no finished trial of a case nope'),
  ]);
});

test('leaves out cases with services, unless new ones are accepted', async () => {
  const at = place();
  const db = { image: 'offsite/base', command: ['sleep', 'infinity'], healthcheck: false };
  const environment = { image: 'offsite/base', services: { db } };
  const variables = { act: 'echo hello > greeting' };
  const suite = at.suite({ cases: [{ id: 'one', variables, environment, verify: 'getent hosts db' }] });
  expect((await offsite(at, ['run', suite])).stdout).toMatch(/one · worker +1 +0 +0/);
  const refused = await offsite(at, ['trial', 'regrade']);
  expect([refused.exitCode, refused.stdout]).toEqual([
    2,
    expect.stringContaining('--new-services starts new ones'),
  ]);
  const again = await offsite(at, ['trial', 'regrade', '--new-services']);
  expect([again.exitCode, again.stdout]).toEqual([0, expect.stringContaining('passed  the same')]);
  expect(again.stdout).toContain('its services were newly started, without what the agent did to them');
});

test('keeps nothing without a budget, and says so', async () => {
  const at = place();
  const suite = at.suite({ cases: cases('true'), config: { advanced: { workspaces: { budget: 0 } } } });
  await offsite(at, ['run', suite]);
  const again = await offsite(at, ['trial', 'regrade', '--json']);
  expect(again.exitCode).toBe(2);
  expect(JSON.parse(again.stdout).leftOutTrials[0]).toMatchObject({ why: 'what it left was not kept' });
});

test('that is interrupted keeps what is graded, and goes on when it is called again', async () => {
  const at = place();
  const acts = ['quick', 'slow'].map((id) => ({
    id,
    variables: { act: `echo ${id} > name` },
    verify: 'true',
  }));
  const suite = at.suite({ cases: acts });
  await offsite(at, ['run', suite]);
  const wait = 'grep -q quick name || sleep 120';
  at.suite({ cases: acts.map((one) => ({ ...one, verify: wait })) });
  const running = start(at, ['trial', 'regrade', '-c', '2']);
  const graded = async () => {
    const shown = JSON.parse((await offsite(at, ['show', 'quick#0', '--json'])).stdout);
    return shown.gradings.length === 1;
  };
  while (!(await graded()));
  running.kill('SIGINT');
  expect((await running.ended).exitCode).toBe(130);
  at.suite({ cases: acts.map((one) => ({ ...one, verify: wait.replace('120', '0.1') })) });
  const again = await offsite(at, ['trial', 'regrade', '--json']);
  expect(JSON.parse(again.stdout)).toMatchObject({ graded: 2, changed: 0 });
});

test('asks the judges of today, and no model of an agent', async () => {
  const at = place();
  const answers = (score: number) =>
    at.write(
      'judge.yaml',
      JSON.stringify({ turns: [{ repeat: true, text: answer(score) }], otherwise: 'no' }),
    );
  const answer = (score: number) => JSON.stringify({ reason: 'because', score });
  const config = { models: { strict: { scripted: 'judge.yaml' } } };
  at.suite({ cases: [], config });
  const source = `import { validate } from 'offsite/validator';
    validate('kind', async ({ read, judge }) => {
      await judge({ rubric: 'It is kind.', material: { reply: await read('reply') }, threshold: 0.5 });
    });`;
  const suite = at.write(
    'suite.yaml',
    JSON.stringify({
      suite: { id: 'judged', prompt: 'Do it.' },
      judges: ['strict'],
      variants: [{ name: 'worker', model: 'none', harness: 'command', profile: 'worker' }],
      cases: [{ id: 'reply', variables: { act: 'echo sorry > reply' }, validator: { source } }],
    }),
  );
  answers(0.1);
  const ran = await offsite(at, ['run', suite, '--json']);
  expect(JSON.parse(ran.stdout)).toMatchObject({ failed: 1 });
  answers(0.9);
  const again = await offsite(at, ['trial', 'regrade', '--planned', '--json']);
  const { trials } = JSON.parse(again.stdout);
  expect(trials).toMatchObject([{ was: { verdict: 'failed' }, now: { verdict: 'passed' } }]);
  const { gradings } = JSON.parse((await offsite(at, ['show', 'reply#0', '--json'])).stdout);
  const judgment = { kind: 'judgment', was: '0.1 < 0.5', now: '0.9 ≥ 0.5', changed: true };
  expect(gradings[0].checks).toContainEqual(expect.objectContaining(judgment));
  const record = JSON.parse(readFileSync(gradings[0].recordBlob.path, 'utf8'));
  expect(record.models.usage).toMatchObject([{ role: 'judge', model: 'strict', requests: 1 }]);
});
