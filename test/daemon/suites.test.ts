import { expect, test } from 'vitest';
import type { RunRecord } from '../../src/contract/record.ts';
import { type DaemonPlace, openDaemonPlace } from './daemon-place.ts';

/** Two suites that have a case `a`, one run in each. */
async function queueInTwo(at: DaemonPlace): Promise<void> {
  await at.queue(['a'], { suite: 'small' });
  await at.queue(['a'], { suite: 'other' });
}

/** The suite and the status of each run of case `a`. */
async function statuses(at: DaemonPlace): Promise<Record<string, unknown>> {
  return Object.fromEntries((await at.runs('a')).map(({ suite, status }) => [suite?.id, status]));
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
  at.configure();
  await queueInTwo(at);
  const { exitCode, stderr } = await at.drained();
  expect(exitCode, stderr).toBe(0);
  expect(await statuses(at)).toEqual({ small: 'completed', other: 'queued' });
  // A case of the configuration is wanted whatever its suite is.
  at.configure({ daemon: { suites: [], cases: ['a'] } });
  await at.drained();
  expect(await statuses(at)).toEqual({ small: 'completed', other: 'completed' });
});

test('a run that does not name its suite is taken only if no other suite has its case', async () => {
  await using at = await openDaemonPlace();
  at.configure();
  hideSuites(at);
  await queueInTwo(at);
  await at.queue(['b'], { suite: 'small' });
  const { exitCode, stderr } = await at.drained();
  expect(exitCode, stderr).toBe(0);
  expect(await statuses(at)).toEqual({ small: 'queued', other: 'queued' });
  expect((await at.runs('b')).map(({ status }) => status)).toEqual(['completed']);
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
  at.configure({ concurrency: 1 });
  const runs = [...(await at.queue(['a'])), ...(await at.queue(['a'])), ...(await at.queue(['a']))];
  const { exitCode, stderr } = await at.drained();
  expect(exitCode, stderr).toBe(0);
  const took = stderr.split('\n').filter((line) => line.includes('took up a run'));
  expect(took.map((line) => runs.findIndex((run) => line.includes(run)))).toEqual([0, 1, 2]);
});
