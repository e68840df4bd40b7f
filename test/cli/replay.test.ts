import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { offsite } from './offsite.ts';
import { openPlace, type Place } from './place.ts';

const example = fileURLToPath(new URL('../../examples/harnesses', import.meta.url));
const read = (name: string) => parse(readFileSync(`${example}/${name}`, 'utf8'));
const { cases } = read('suite.yaml');

/** Those that this machine trusts: a harness may have to be installed. */
const certificates = Object.fromEntries(
  ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'npm_config_cafile'].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  }),
);

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
}, 300_000);
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
  const { stdout } = await offsite(place, ['show']);
  expect(stdout).toMatch(
    new RegExp(`replayed from ${recordedId}, not a live result: \\d+ requests of 6 trials`),
  );
}, 300_000);

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
}, 120_000);

test('with --on-miss live the model answers what is not recorded', async () => {
  const file = suite(['bash'], { rehearsal: live }, { ...tenWords, verify: 'true', protected: [] });
  const { trials } = await run(file, '--replay', recordedId, '--on-miss', 'live');
  expect(trials[0]).toMatchObject({ verdict: 'passed', replay: { answered: 2, live: 1 } });
  expect(trials[0]?.costUsd).toBeGreaterThan(0);
}, 120_000);

test('a cassette of the batch answers the model of another configuration', async () => {
  const cassette = `${place.folder}/project/recorded.jsonl`;
  const { stderr } = await offsite(place, ['export', recordedId, '--cassette', cassette]);
  expect(stderr).toMatch(/^.*recorded\.jsonl: \d+ exchanges of 6 trials of batch_/);
  const { trials } = await run(suite(['bash'], { rehearsal: { replay: 'recorded.jsonl' } }));
  expect(trials.map(({ verdict, replay }) => [verdict, replay?.answered])).toEqual([
    ['passed', 3],
    ['passed', 4],
  ]);
}, 120_000);

test('a batch that kept no exchanges cannot be replayed or exported', async () => {
  const { batchId } = await run(suite(['bash'], { rehearsal: { ...live, record: 'metadata' } }));
  const replayed = await offsite(place, ['run', suite(['bash'], {}), '--replay', batchId]);
  expect(replayed).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('record: full') });
  const exported = await offsite(place, ['export', batchId, '--cassette', `${place.folder}/none`]);
  expect(exported).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('record: full') });
}, 120_000);

test.each([
  [['--on-miss', 'live'], '--on-miss needs --replay'],
  [['--replay', 'nothing'], 'has no batch nothing'],
  [['--replay', 'x', '--dry-run'], 'cannot be used with'],
])('%j is refused', async (options, message) => {
  const { exitCode, stderr } = await offsite(place, ['run', suite(['bash'], {}), ...options]);
  expect(exitCode).toBe(2);
  expect(stderr).toContain(message);
});
