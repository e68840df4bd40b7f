import { test as base, expect } from 'vitest';
import { start } from '../cli/offsite.ts';
import { openPlace } from '../cli/place.ts';
import { interruptRun, succeed } from './commands.ts';
import { slots } from './http.ts';
import { openStrictDouble } from './strict.ts';
import { allTrials, startedElsewhere, writeWork } from './work.ts';

// Most of the time, a test waits for the engine.
const test = base.concurrent;

/** Starts real commands and containers. */
const slow = { timeout: 240_000 };

test('a strict service records what `offsite run` reports', slow, async () => {
  using place = openPlace();
  await using double = await openStrictDouble();
  const { suite } = writeWork(place);
  const { stderr } = await succeed(place, ['run', suite], double);
  expect(slots(double)).toEqual(allTrials);
  expect(stderr).toMatch(/refuses trajectory events/);
});

test('a strict service that wants to know what started a batch is told in CI', slow, async () => {
  using place = openPlace();
  await using double = await openStrictDouble();
  const { suite } = writeWork(place);
  const env = {
    ...double.env,
    GITHUB_SERVER_URL: 'https://github.example',
    GITHUB_REPOSITORY: 'acme/app',
    GITHUB_RUN_ID: '7',
  };
  await succeed(place, ['run', suite], { ...double, env });
  await succeed(place, ['service', 'start', suite, '--drop-local'], { ...double, env });
  const trigger = { url: 'https://github.example/acme/app/actions/runs/7' };
  expect(double.triggers).toEqual([trigger, trigger]);
});

test.for(['before', 'after'] as const)(
  'a strict service has each trial once if the run is killed %s it records the first',
  slow,
  async (when) => {
    using place = openPlace();
    await using double = await openStrictDouble();
    const { suite, config } = writeWork(place);
    await interruptRun(place, suite, double, when);
    await succeed(place, ['resume', ...config], double);
    expect(slots(double)).toEqual(allTrials);
  },
);

test('a strict service gets from a daemon the results of runs that somebody queued', slow, async () => {
  using place = openPlace();
  await using double = await openStrictDouble();
  const { config } = writeWork(place);
  await double.start(startedElsewhere);
  await succeed(place, ['daemon', '--once', ...config], double);
  expect(slots(double)).toEqual(allTrials);
});

test(
  'a strict service gets from a daemon the results of a suite in its queue, and of a rerun',
  slow,
  async () => {
    using place = openPlace();
    await using double = await openStrictDouble();
    const { suite, config } = writeWork(place);
    await succeed(place, ['daemon', 'enqueue', suite, ...config], double);
    await succeed(place, ['daemon', '--once', ...config], double);
    expect(slots(double)).toEqual(allTrials);

    const { stdout } = await succeed(place, ['service', 'runs', 'one', '--json', ...config], double);
    const { runs } = JSON.parse(stdout);
    const [{ batchId, variant }] = runs;
    await succeed(place, ['service', 'rerun', batchId, `one:${variant.id}`, ...config], double);
    await succeed(place, ['daemon', '--once', ...config], double);
    expect(slots(double)).toEqual([...allTrials, 'one 1 0 false'].toSorted());
  },
);

test('a strict service understands each command that only asks it', slow, async () => {
  using place = openPlace();
  await using double = await openStrictDouble();
  const { config } = writeWork(place);
  await double.start(startedElsewhere);
  for (const args of [
    ['service', 'whoami'],
    ['service', 'integrations'],
    ['service', 'cases'],
    ['service', 'runs', 'one'],
    ['service', 'prompts', 'get', 'p'],
  ]) {
    await succeed(place, [...args, ...config], double);
  }
});

test('a key that may not report keeps the results until it may', slow, async () => {
  using place = openPlace();
  const permissions = ['evals:read', 'evals:write'];
  await using double = await openStrictDouble(permissions);
  const { suite, config } = writeWork(place);
  double.onReport = () => {
    throw new Error('no report may come here');
  };
  const running = start(place, ['run', suite], { env: double.env });
  await expect.poll(() => double.asked).toContain('evals.runs.list');
  permissions.splice(permissions.indexOf('evals:write'), 1);
  const { exitCode, stderr } = await running.ended;
  expect([exitCode, double.recorded]).toEqual([3, []]);
  expect(stderr).toMatch(/403 Forbidden/);

  permissions.push('evals:write');
  double.onReport = undefined;
  await succeed(place, ['data', 'outbox', 'send', ...config], double);
  expect(slots(double)).toEqual(allTrials);
});
