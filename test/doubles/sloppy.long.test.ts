import { test as base, expect } from 'vitest';
import { openPlace } from '../cli/place.ts';
import { interruptRun, succeed } from './commands.ts';
import { slots } from './http.ts';
import { openSloppyDouble, type Sloppiness } from './sloppy.ts';
import { allTrials, startedElsewhere, writeWork } from './work.ts';

// Most of the time, a test waits for the engine.
const test = base.concurrent;

/** Starts real commands and containers. */
const slow = { timeout: 240_000 };

const ways: [string, Partial<Sloppiness>][] = [
  ['counts pages from 1 and takes reports by run', {}],
  [
    'counts pages from 0, lists recorded trials only and takes reports by batch',
    { pagesFrom: 0, listsTrials: 'recorded', reportsBy: 'batch', openStatus: 'somewhere' },
  ],
];

test.for(ways)(
  'a sloppy service that %s records what `offsite run` reports',
  slow,
  async ([, sloppiness]) => {
    using place = openPlace();
    await using double = await openSloppyDouble(sloppiness);
    await succeed(place, ['run', writeWork(place).suite], double);
    expect(slots(double)).toEqual(allTrials);
  },
);

test.for(ways)(
  'a sloppy service that %s has each trial once after a resumed run',
  slow,
  async ([, sloppiness]) => {
    using place = openPlace();
    await using double = await openSloppyDouble(sloppiness);
    const { suite, config } = writeWork(place);
    await interruptRun(place, suite, double, 'before');
    await succeed(place, ['resume', ...config], double);
    expect(slots(double)).toEqual(allTrials);
  },
);

test.for(ways)(
  'a sloppy service that %s gets from a daemon the results of its queue',
  slow,
  async ([, sloppiness]) => {
    using place = openPlace();
    await using double = await openSloppyDouble(sloppiness);
    const { suite, config } = writeWork(place);
    await succeed(place, ['daemon', 'enqueue', suite, ...config], double);
    await succeed(place, ['daemon', '--once', ...config], double);
    expect(slots(double)).toEqual(allTrials);
  },
);

test.for([
  ['counts pages from 1 and lists all trials', {}],
  ['counts pages from 0 and lists recorded trials only', { pagesFrom: 0, listsTrials: 'recorded' }],
] as [string, Partial<Sloppiness>][])(
  'a sloppy service that %s gets from a daemon the results of runs that somebody queued',
  slow,
  async ([, sloppiness]) => {
    using place = openPlace();
    await using double = await openSloppyDouble(sloppiness);
    const { config } = writeWork(place);
    await double.start(startedElsewhere);
    await succeed(place, ['daemon', '--once', ...config], double);
    expect(slots(double)).toEqual(allTrials);
  },
);

test('each command that only asks understands a sloppy service', slow, async () => {
  using place = openPlace();
  await using double = await openSloppyDouble();
  const { config } = writeWork(place);
  await double.start(startedElsewhere);
  for (const args of [
    ['service', 'whoami'],
    ['service', 'integrations'],
    ['service', 'cases'],
    ['service', 'runs', 'one'],
    ['service', 'prompts', 'get', 'p'],
    ['service', 'prompts', 'promote', 'p', 'live', '1'],
    ['service', 'rerun', 'batch', 'one:v0'],
  ]) {
    await succeed(place, [...args, ...config], double);
  }
});
