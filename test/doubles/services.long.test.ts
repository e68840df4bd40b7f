import { test as base, expect } from 'vitest';
import { start } from '../cli/offsite.ts';
import { openPlace } from '../cli/place.ts';
import { interruptRun, succeed } from './commands.ts';
import { slots } from './http.ts';
import { openSloppyDouble } from './sloppy.ts';
import { openStrictDouble } from './strict.ts';
import { allTrials, startedElsewhere, writeWork } from './work.ts';

// Most of the time, a test waits for the engine.
const test = base.concurrent;

/** Starts real commands and containers. */
const slow = { timeout: 240_000 };

/** Services that read the specification in different ways. */
const services = {
  'a strict service': () => openStrictDouble(),
  'a sloppy service': () => openSloppyDouble(),
  'a sloppy service that counts pages from 0, lists recorded trials only and takes reports by batch': () =>
    openSloppyDouble({ pagesFrom: 0, listsTrials: 'recorded', reportsBy: 'batch', openStatus: 'somewhere' }),
};
const eachService = Object.entries(services);

test.for(eachService)('%s records what `offsite run` reports', slow, async ([name, open]) => {
  using place = openPlace();
  await using double = await open();
  const { stderr } = await succeed(place, ['run', writeWork(place).suite], double);
  expect(slots(double)).toEqual(allTrials);
  if (name === 'a strict service') expect(stderr).toMatch(/refuses trajectory events/);
});

test.for([
  ...eachService.map(([name, open]) => ['before', name, open] as const),
  ['after', 'a strict service', services['a strict service']] as const,
])(
  'if a run is killed %s the first trial is recorded by %s, each is there once after a resume',
  slow,
  async ([when, , open]) => {
    using place = openPlace();
    await using double = await open();
    const { suite, config } = writeWork(place);
    await interruptRun(place, suite, double, when);
    await succeed(place, ['resume', ...config], double);
    expect(slots(double)).toEqual(allTrials);
  },
);

test.for(eachService)(
  '%s gets from a daemon the results of a suite in its queue, and of a rerun',
  slow,
  async ([name, open]) => {
    using place = openPlace();
    await using double = await open();
    const { suite, config } = writeWork(place);
    await succeed(place, ['daemon', 'enqueue', suite, ...config], double);
    await succeed(place, ['daemon', '--once', ...config], double);
    expect(slots(double)).toEqual(allTrials);
    if (name !== 'a strict service') return;
    const { stdout } = await succeed(place, ['service', 'runs', 'one', '--json', ...config], double);
    const [{ batchId, variant }] = JSON.parse(stdout).runs;
    await succeed(place, ['service', 'rerun', batchId, `one:${variant.id}`, ...config], double);
    await succeed(place, ['daemon', '--once', ...config], double);
    expect(slots(double)).toEqual([...allTrials, 'one 1 0 false'].toSorted());
  },
);

test.for([
  ...eachService.slice(0, 2),
  [
    'a sloppy service that counts pages from 0 and lists recorded trials only',
    () => openSloppyDouble({ pagesFrom: 0, listsTrials: 'recorded' }),
  ] as const,
])('%s gets from a daemon the results of runs that somebody queued', slow, async ([, open]) => {
  using place = openPlace();
  await using double = await open();
  const { config } = writeWork(place);
  await double.start(startedElsewhere);
  await succeed(place, ['daemon', '--once', ...config], double);
  expect(slots(double)).toEqual(allTrials);
});

test.for(eachService.slice(0, 2))(
  '%s understands each command that only asks it',
  slow,
  async ([name, open]) => {
    using place = openPlace();
    await using double = await open();
    const { config } = writeWork(place);
    await double.start(startedElsewhere);
    for (const args of [
      ['service', 'whoami'],
      ['service', 'integrations'],
      ['service', 'cases'],
      ['service', 'runs', 'one'],
      ['service', 'prompts', 'get', 'p'],
      ...(name === 'a strict service'
        ? []
        : [
            ['service', 'prompts', 'promote', 'p', 'live', '1'],
            ['service', 'rerun', 'batch', 'one:v0'],
          ]),
    ]) {
      await succeed(place, [...args, ...config], double);
    }
  },
);

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
