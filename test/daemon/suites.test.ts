import { pino } from 'pino';
import { expect, test } from 'vitest';
import { Metrics } from '../../src/agent/daemon/metrics.ts';
import { poll } from '../../src/agent/daemon/poll.ts';
import { PollTargets } from '../../src/agent/daemon/poll-targets.ts';
import { systemClock as clock } from '../../src/base/clock.ts';
import { createClient } from '../../src/client/client.ts';
import type { RunRecord } from '../../src/contract/record.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { daemonLock } from '../../src/ledger/queue.ts';
import { ConfigFile } from '../../src/suite/config-file.ts';
import { type DaemonPlace, openDaemonPlace } from './daemon-place.ts';

/** Two suites that have a case `a`, one run in each. Resolves with the runs' ids. */
async function queueInTwo(at: DaemonPlace) {
  const [small = ''] = await at.queue(['a'], { suite: 'small' });
  const [other = ''] = await at.queue(['a'], { suite: 'other' });
  return { small, other };
}

/** The runs that a daemon has in its queue, in order, once it has looked everywhere. */
async function found(at: DaemonPlace, watched: object): Promise<string[]> {
  const { OFFSITE_URL: url, OFFSITE_API_KEY: apiKey } = at.service.env;
  await using client = createClient({ url, apiKey, clock });
  using ledger = new Ledger(at.place.dataFolder, clock);
  const { daemon } = ConfigFile.parse({ daemon: watched });
  const targets = new PollTargets(daemon, { clock, random: Math.random });
  const tell = { adopted: () => undefined, failed: () => undefined, unclear: new Set<string>() };
  const log = pino({ level: 'silent' });
  const parts = { client, clock, ledger, service: 'there', targets, metrics: new Metrics(), log, ...tell };
  while (!targets.allPolled) await poll(parts, new AbortController().signal);
  return ledger.queue.next({ service: 'there', lock: daemonLock }, 10).map(({ runId }) => runId);
}

/** Takes the suite out of each record of `evals.runs.list`, as a service may that does not tell it. */
function hideSuites(at: DaemonPlace): void {
  at.service.alter = (operation, body) => {
    if (operation !== 'evals.runs.list') return body;
    const page: { runs: RunRecord[] } = JSON.parse(body);
    return JSON.stringify({ ...page, runs: page.runs.map(({ suite, ...run }) => run) });
  };
}

test('a suite brings only its own runs, also of a case that another suite has too', async () => {
  await using at = await openDaemonPlace();
  const { small, other } = await queueInTwo(at);
  expect(await found(at, { suites: ['small'] })).toEqual([small]);
  // A case of the configuration is wanted whatever its suite is.
  expect(await found(at, { cases: ['a'] })).toEqual([small, other]);
});

test('a run that does not name its suite is taken only if no other suite has its case', async () => {
  await using at = await openDaemonPlace();
  hideSuites(at);
  await queueInTwo(at);
  const alone = await at.queue(['b'], { suite: 'small' });
  expect(await found(at, { suites: ['small'] })).toEqual(alone);
});

test('the lists of cases and of runs show the suite', async () => {
  await using at = await openDaemonPlace();
  at.configure();
  await queueInTwo(at);
  for (const args of [
    ['service', 'runs', 'a'],
    ['service', 'cases'],
  ]) {
    const { stdout } = await at.command(...args);
    expect(stdout).toMatch(/\bsuite\b/);
    expect(stdout).toMatch(/\bsmall\b/);
    expect(stdout).toMatch(/\bother\b/);
  }
});

test('of the batches that one look finds, the one that was started first is run first', async () => {
  await using at = await openDaemonPlace();
  const runs = [...(await at.queue(['a'])), ...(await at.queue(['a'])), ...(await at.queue(['a']))];
  expect(await found(at, { suites: ['small'] })).toEqual(runs);
});
