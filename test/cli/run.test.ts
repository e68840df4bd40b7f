import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RunRecord } from '../../src/contract/record.ts';
import { someOf } from '../short-tests.ts';
import { runsOf } from './ask.ts';
import { type Ended, offsiteHere as offsite, start } from './offsite.ts';
import { openPlace, type Place } from './place.ts';

const validator = `import { validate } from 'offsite/validator';
import { readFileSync } from 'node:fs';
validate('greets {{who}}', ({ workspace }) => {
  console.log('reading');
  const text = readFileSync(workspace + '/hello.txt', 'utf8');
  if (!text.includes('{{who}}')) throw new Error('no {{who}} in it');
  return text;
});`;

const greeting = {
  variables: { who: 'world' },
  prepare: 'echo prepared > base.txt',
  verify: 'test -f hello.txt\ngrep -q "$who" hello.txt',
  validator: { source: validator, manifest: ['greets world'] },
  artifacts: ['*.txt'],
};

describe('offsite run', () => {
  let place: Place;
  let ended: Ended;
  let runs: RunRecord[];
  beforeAll(async () => {
    place = openPlace();
    const suite = place.suite({
      trials: 2,
      run: 'eval "$act"\nls',
      cases: [
        { id: 'good', ...greeting, variables: { who: 'world', act: 'echo hello world > hello.txt' } },
        { id: 'bad', ...greeting, variables: { who: 'world', act: 'echo hello moon > hello.txt' } },
        {
          id: 'quiet',
          verify: 'true',
          validator: {
            source:
              "import { validate } from 'offsite/validator'; validate('v', () => { console.log('word-1'); throw new Error('word-2') })",
            capture: false,
          },
        },
        { id: 'unprepared', prepare: 'echo out; echo why >&2; exit 4', verify: 'true' },
      ],
    });
    ended = await offsite(place, ['run', suite, '--fail-under', '0.9']);
    runs = await runsOf(place, 'good', 'bad', 'quiet', 'unprepared');
  });
  afterAll(() => place?.[Symbol.dispose]());

  const run = (id: string) => {
    const found = runs.find((one) => one.case?.id === id);
    if (!found) throw new Error(`the service has no run of ${id}`);
    return found;
  };

  test('prints a closing table on stdout, and nothing else there', () => {
    expect(
      ended.stdout
        .trim()
        .split(/\n/)
        .map((line) => line.split(/\s{2,}/).slice(0, 5)),
    ).toEqual([
      ['run', 'passed', 'failed', 'void', 'pass rate'],
      ['good · worker', '2', '0', '0', '100 %'],
      ['bad · worker', '0', '2', '0', '0 %'],
      ['quiet · worker', '0', '2', '0', '0 %'],
      ['unprepared · worker', '0', '0', '2', '–'],
      ['all', '2', '4', '2', '33 %'],
    ]);
  });

  test('tells on stderr what it does, a line a trial', () => {
    expect(ended.stderr).toContain('service: embedded');
    expect(ended.stderr).toMatch(/✓ good · worker #0 {2}passed {2}\d/);
    expect(ended.stderr).toMatch(/✗ bad · worker #1 {2}failed/);
  });

  test('tells why a prepare failed when it fails, once for all trials of the case', () => {
    const { stderr } = ended;
    const failure =
      /○ prepare of unprepared failed: .*\n +task, in prepare: prepare exited with 4\n +│ out\n +│ why\n/;
    expect(stderr).toMatch(failure);
    expect(stderr.match(/│ why/g)).toHaveLength(1);
    const trials = stderr.match(/○ unprepared · worker #[01] {2}void: its prepare failed\n/g);
    expect(trials).toHaveLength(2);
    expect(stderr.search(failure)).toBeLessThan(stderr.indexOf(trials?.[0] ?? ''));
  });

  test('exits 3 where a trial is void, also below --fail-under, and says which of both it is', () => {
    expect(ended.exitCode).toBe(3);
    expect(ended.stderr).toMatch(
      /^the pass rate of 33 % is below 90 % \(--fail-under\)\n2 trials without a verdict: the exit code is 3$/m,
    );
  });

  test('leaves local, completed runs at the service, with every trial reported and the distribution right', () => {
    expect(run('good')).toMatchObject({
      local: true,
      status: 'completed',
      suite: { id: 'small' },
      variant: { model: 'none' },
      distribution: { trials: 2, scored: 2, passed: 2, failed: 0, voided: 0, passRate: 1 },
    });
    expect(run('bad')).toMatchObject({
      local: true,
      status: 'completed',
      distribution: { trials: 2, scored: 2, passed: 0, failed: 2, voided: 0, passRate: 0 },
    });
    for (const { trials } of [run('good'), run('bad')]) {
      expect(trials?.map(({ ordinal, status }) => [ordinal, status])).toEqual([
        [0, 'reported'],
        [1, 'reported'],
      ]);
    }
  });

  test("reports a trial's trajectory, verify steps, validations and measured times", () => {
    const [trial] = run('bad').trials ?? [];
    expect(trial).toMatchObject({
      commands: 2,
      failedCommands: 0,
      exitCode: 0,
      modelMs: 0,
      voidFields: [],
      sandboxId: expect.stringMatching(/^[0-9a-f]{64}$/),
      trajectory: [
        { _tag: 'command', command: 'eval "$act"', exitCode: 0, outputTruncated: false },
        { _tag: 'command', command: 'ls', exitCode: 0, output: 'base.txt\nhello.txt\n' },
      ],
      verifySteps: [
        { command: 'test -f hello.txt', exitCode: 0 },
        { command: 'grep -q "$who" hello.txt', exitCode: 1 },
      ],
      validations: [
        {
          index: 0,
          name: 'greets world',
          exitCode: 1,
          message: 'no world in it',
          logs: [{ value: { text: 'reading\n' } }],
        },
      ],
    });
    expect(trial?.sandboxMs).toBeGreaterThan(0);
    expect(run('good').trials?.[0]?.validations?.[0]?.output?.text).toBe('hello world\n');
  });

  test('reports artifacts whose hashes are those of the stored files', () => {
    const artifacts = run('good').trials?.flatMap((trial) => trial.artifacts ?? []) ?? [];
    expect(artifacts.map(({ path }) => path).sort()).toEqual(
      ['base.txt', 'hello.txt', '.offsite/record.json', '.offsite/trajectory.jsonl']
        .flatMap((path) => [path, path])
        .sort(),
    );
    for (const { sha256, byteSize } of artifacts) {
      const content = readFileSync(join(place.dataFolder, 'blobs', sha256.slice(0, 2), sha256));
      expect(createHash('sha256').update(content).digest('hex')).toBe(sha256);
      expect(content.byteLength).toBe(byteSize);
    }
  });

  test('reports no text of a validator that is not to be captured', () => {
    const [trial] = run('quiet').trials ?? [];
    expect(trial?.validations).toMatchObject([{ name: 'v', exitCode: 1 }]);
    expect(JSON.stringify(trial)).not.toContain('word-');
  });

  // Other tests run these commands in their own process, which goes on.
  test.each<[string[], number?]>(
    someOf([
      [['show']],
      [['compare', 'last', 'last'], 2],
      [['data', 'batches']],
      [['data', 'check']],
      [['data', 'outbox']],
      [['service', 'runs', 'good']],
      [['service', 'keys']],
      [['export', '--csv', '-']],
      [['models', 'list']],
      [['daemon', 'status'], 2],
      [['data', 'prune', '--older-than', '1h']],
      [['audit', 'last']],
    ]),
  )('a process of its own ends after %j', async (args, expected = 0) => {
    const { exitCode, signal, stderr } = await start(place, args).ended;
    expect({ exitCode, signal }, stderr).toEqual({ exitCode: expected, signal: undefined });
  });

  test('reports trials whose prepare failed as void and not as failed', () => {
    expect(run('unprepared')).toMatchObject({
      status: 'completed',
      distribution: { trials: 2, scored: 0, failed: 0, voided: 2 },
    });
    for (const trial of run('unprepared').trials ?? []) {
      expect(trial.status).toBe('voided');
      expect(trial.voidFields).toContain('passed');
    }
  });
});

test('offsite run --include and --exclude choose cases of a suite', async () => {
  using place = openPlace();
  const ids = ['good', 'good-too', 'bad'];
  const suite = place.suite({ cases: ids.map((id) => ({ id, verify: 'true' })), run: 'true' });
  const chosen = await offsite(place, ['run', suite, '--json', '--include', 'good*', '--exclude', '*-too']);
  expect(JSON.parse(chosen.stdout).runs.map((run: { case: string }) => run.case)).toEqual(['good']);
  const none = await offsite(place, ['run', suite, '--include', 'ugly'], { env: { GITHUB_ACTIONS: 'true' } });
  expect(none).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('no case matches "ugly"') });
  expect(none.stderr).toMatch(/^::error title=Offsite%3A exit code 2::error: .*no case matches "ugly"/m);
});

test('offsite run exits 0 whatever the verdicts, and 1 below --fail-under; --json prints one document', async () => {
  using place = openPlace();
  const suite = place.suite({
    cases: [
      { id: 'good', verify: 'true' },
      { id: 'bad', verify: 'false' },
    ],
    run: 'echo 1 > made',
  });
  const plain = await offsite(place, ['run', suite]);
  expect(plain).toMatchObject({ exitCode: 0 });
  const json = await offsite(place, ['run', suite, '--json', '--fail-under', '0.9', '-c', '1'], {
    env: { GITHUB_ACTIONS: 'true' },
  });
  expect(json.exitCode).toBe(1);
  expect(json.stderr).toContain('the pass rate of 50 % is below 90 % (--fail-under)');
  expect(json.stderr).toContain('::error title=Offsite%3A exit code 1::the pass rate of 50 %25 is below');
  const document = JSON.parse(json.stdout);
  expect(document).toMatchObject({
    service: 'embedded',
    passed: 1,
    failed: 1,
    void: 0,
    unreported: 0,
    passRate: 0.5,
    runs: [
      { case: 'good', variant: 'worker', passed: 1, commands: 1 },
      {
        case: 'bad',
        variant: 'worker',
        failed: 1,
        trials: [{ ordinal: 0, verdict: 'failed', reported: true }],
      },
    ],
  });
  expect(document.runs[0].trials[0].filesChanged).toEqual(['made']);
});
