import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { offsite, trustOfThisMachine } from './offsite.ts';
import { openPlace, type Place } from './place.ts';

const example = fileURLToPath(new URL('../../examples/harnesses', import.meta.url));
const read = (name: string) => parse(readFileSync(`${example}/${name}`, 'utf8'));
const { cases } = read('suite.yaml');

/** A harness may have to be installed. */
const certificates = await trustOfThisMachine();

/** The configuration for CI of docs/replay.md. */
const [, documented = ''] =
  /## In CI.*?```yaml\n(.*?)```/s.exec(
    readFileSync(new URL('../../docs/replay.md', import.meta.url), 'utf8'),
  ) ?? [];

interface Trial {
  verdict: string;
  costUsd?: number;
  tokens: number;
  replay?: { of: string; answered: number; live?: number; changed?: number };
  cause?: { kind: string; message: string };
}

let place: Place;
let recordedId: string;

/** The example with some harnesses. @param models of the configuration */
function suite(harnesses: string[], models: object, changed: object = {}): string {
  place.write('rehearsal.yaml', readFileSync(`${example}/rehearsal.yaml`, 'utf8'));
  const variants = harnesses.map((harness) => ({ name: harness, model: 'rehearsal', harness }));
  const path = place.suite({
    cases: cases.map((one: object) => ({ ...one, ...changed })),
    variants,
    sandbox: { memory: '1g' },
    config: { models },
  });
  // The prompt of the example, in place of the smallest one.
  return place.write(
    'suite.yaml',
    readFileSync(path, 'utf8').replace('prompt: Do it.', 'prompt: "{{task}}"'),
  );
}

async function run(
  file: string,
  ...options: string[]
): Promise<{ batchId: string; trials: Trial[]; code: number }> {
  const {
    stdout,
    stderr,
    exitCode = -1,
  } = await offsite(place, ['run', file, '--json', ...options], {
    env: certificates,
  });
  if (stdout === '') throw new Error(stderr);
  const { batchId, runs } = JSON.parse(stdout);
  return { batchId, trials: runs.flatMap((one: { trials: Trial[] }) => one.trials), code: exitCode };
}

const live = {
  scripted: 'rehearsal.yaml',
  record: 'full',
  prices: { date: '2026-01-01', input: 1, output: 5 },
};
const real = ['bash', 'codex', 'pi'];
/** Ten words in place of nine, so that the result of a command differs. */
const tenWords = { prepare: 'seq 10 > text.txt; echo "module.exports = () => 5" > sum.js; echo > check.js' };

beforeAll(async () => {
  place = openPlace();
  const { batchId, trials } = await run(suite(real, { rehearsal: live }));
  expect(trials.map(({ verdict, cause }) => cause?.message ?? verdict)).toEqual(Array(6).fill('passed'));
  recordedId = batchId;
});
afterAll(() => place?.[Symbol.dispose]());

test('a batch is replayed with its harnesses, without a model and at no cost', async () => {
  const file = suite(real, {});
  const { trials, code } = await run(file, '--replay', recordedId);
  expect(code).toBe(0);
  expect(trials).toHaveLength(6);
  for (const trial of trials) {
    expect(trial).toMatchObject({ verdict: 'passed', costUsd: 0, replay: { of: recordedId } });
    expect(trial.replay?.live).toBeUndefined();
    expect(trial.replay?.changed).toBeUndefined();
    expect(trial.tokens).toBeGreaterThan(0);
  }
  const listed = await offsite(place, ['data', 'batches', '--json']);
  expect(JSON.parse(listed.stdout)[0].marks).toEqual(['replayed']);
  const { stdout } = await offsite(place, ['show']);
  expect(stdout).toMatch(
    new RegExp(`replayed from ${recordedId}, not a live result: \\d+ requests of 6 trials`),
  );
});

test('a request that is not recorded ends its trial without a verdict, and the cause says what differs', async () => {
  const { trials } = await run(suite(['bash'], {}, tenWords), '--replay', recordedId);
  const [count] = trials;
  expect(count).toMatchObject({ verdict: 'void', cause: { kind: 'replay' } });
  expect(count?.cause?.message).toContain(
    `request 3 (agent) has no recorded answer in ${recordedId}: ` +
      'the nearest is request 3 of count-words · bash #0: turn 5 differs in the result of call 1: ' +
      'recorded "9\\n\\n[exit code 0]", now "10\\n\\n[exit code 0]"',
  );
  expect(count?.cause?.message).toContain('--on-miss live');
});

test('with --on-miss live the model answers what is not recorded', async () => {
  const file = suite(['bash'], { rehearsal: live }, { ...tenWords, verify: 'true', protected: [] });
  const { trials } = await run(file, '--replay', recordedId, '--on-miss', 'live');
  expect(trials[0]).toMatchObject({ verdict: 'passed', replay: { answered: 2, live: 1 } });
  expect(trials[0]?.costUsd).toBeGreaterThan(0);
});

test('a cassette of the batch answers the model of the documented configuration', async () => {
  const cassette = `${place.folder}/project/recorded.jsonl`;
  const { stderr } = await offsite(place, ['export', recordedId, '--cassette', cassette]);
  expect(stderr).toMatch(/^.*recorded\.jsonl: \d+ exchanges of 6 trials of batch_/);
  const { models } = parse(documented);
  const { trials } = await run(suite(['bash'], models), '--fail-under', '1');
  expect(trials.map(({ verdict, replay }) => [verdict, replay?.answered])).toEqual([
    ['passed', 3],
    ['passed', 4],
  ]);
});

test('a fork replays a trial up to a request, and goes on with another model', async () => {
  // Its first turn is the one that is replayed.
  const turns = [{ run: 'true' }, { text: 'Ten, I say.', run: 'echo 10 > count.txt' }, { text: 'Done.' }];
  place.write('other.yaml', JSON.stringify({ turns, otherwise: 'Done.' }));
  suite(['bash'], { rehearsal: live, other: { scripted: 'other.yaml', record: 'full' } });
  const reference = `${recordedId}:count-words/codex#0`;
  const fork = (...args: string[]) =>
    offsite(
      place,
      // The working folder has no configuration: it is beside the suite of the trial.
      ['trial', 'fork', reference, ...args],
      {
        env: { ...certificates, OFFSITE_URL: 'http://127.0.0.1:9' },
      },
    );
  const { stdout, stderr } = await fork('--at', '1', '--model', 'other', '--json');
  const [run] = JSON.parse(stdout || stderr).runs;
  expect(run).toMatchObject({ case: 'count-words', variant: 'codex, then other', model: 'other' });
  // The other model wrote another number.
  expect(run.trials).toMatchObject([
    {
      verdict: 'failed',
      replay: { answered: 1, live: 2, forkedAt: 1, of: expect.stringContaining('codex#0') },
    },
  ]);
  const listed = await offsite(place, ['data', 'batches', '--json']);
  expect(JSON.parse(listed.stdout)[0].marks).toEqual(['forked']);
  const late = await fork('--at', '9', '--model', 'other');
  expect(late).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('has no request 9') });
  const unknown = await fork('--at', '1', '--model', 'nobody');
  expect(unknown).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('"nobody" is not a model') });
});

test('a fork with another harness gives it the recorded commands, and goes on with another model', async () => {
  const turns = [{ run: 'true' }, { text: 'Is it right?', run: 'cat count.txt' }, { text: 'Done.' }];
  place.write('other.yaml', JSON.stringify({ turns, otherwise: 'Done.' }));
  suite(['bash'], { rehearsal: live, other: { scripted: 'other.yaml', record: 'full' } });
  const reference = `${recordedId}:count-words/bash#0`;
  const fork = (...args: string[]) =>
    offsite(
      place,
      [
        'trial',
        'fork',
        reference,
        '--model',
        'other',
        ...args,
        '--config',
        `${place.folder}/project/offsite.yaml`,
      ],
      { env: { ...certificates, OFFSITE_URL: 'http://127.0.0.1:9' } },
    );
  const { stdout, stderr } = await fork('--at', '1', '--harness', 'codex', '--json');
  const [run] = JSON.parse(stdout || stderr).runs;
  expect(run).toMatchObject({ variant: 'bash, then other with codex', model: 'other' });
  // Only the recorded command writes the number.
  expect(run.trials).toMatchObject([
    { verdict: 'passed', replay: { answered: 1, live: 2, forkedAt: 1, fromHarness: 'bash' } },
  ]);
  const shown = await offsite(place, ['show', `${run.id}#0`, '--model']);
  expect(shown.stdout).toContain('1 in their order');
  const unknown = await fork('--at', '1', '--harness', 'nothing');
  expect(unknown).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('is not a harness') });
  const unfit = await fork('--at', '1', '--harness', 'command');
  expect(unfit).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('needs a profile') });
  const lone = await fork('--at', '1', '--profile', 'mine');
  expect(lone).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('--profile needs --harness') });
});

test('a call that is no shell command cannot be given to another harness', async () => {
  const patch = { calls: [{ tool: 'apply_patch', arguments: { input: 'x' } }] };
  const turns = [{ run: 'true' }, patch, { text: 'Done.' }];
  place.write('patching.yaml', JSON.stringify({ turns, otherwise: 'Done.' }));
  const models = { rehearsal: { ...live, scripted: 'patching.yaml' } };
  const { batchId } = await run(suite(['bash'], models, { verify: 'true', protected: [] }));
  const refused = await offsite(place, [
    'trial',
    'fork',
    `${batchId}:count-words/bash#0`,
    '--at',
    '2',
    '--model',
    'rehearsal',
    '--harness',
    'codex',
    '--config',
    `${place.folder}/project/offsite.yaml`,
  ]);
  expect(refused).toMatchObject({
    exitCode: 2,
    stderr: expect.stringMatching(
      /to request 2 of \S+bash#0: it calls apply_patch, which is not a shell command.*--at for another harness is 1/s,
    ),
  });
});

test('a batch that kept no exchanges cannot be replayed or exported', async () => {
  const { batchId } = await run(suite(['bash'], { rehearsal: { ...live, record: 'metadata' } }));
  const replayed = await offsite(place, ['run', suite(['bash'], {}), '--replay', batchId]);
  expect(replayed).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('record: full') });
  const exported = await offsite(place, ['export', batchId, '--cassette', `${place.folder}/none`]);
  expect(exported).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('record: full') });
});

test.each([
  [['--on-miss', 'live'], '--on-miss needs --replay'],
  [['--replay', 'nothing'], 'has no batch nothing'],
  [['--replay', 'x', '--dry-run'], 'cannot be used with'],
])('%j is refused', async (options, message) => {
  const { exitCode, stderr } = await offsite(place, ['run', suite(['bash'], {}), ...options]);
  expect(exitCode).toBe(2);
  expect(stderr).toContain(message);
});
