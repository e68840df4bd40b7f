import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../../src/base/clock.ts';
import { Ledger } from '../../../src/ledger/ledger.ts';
import { type RandomIndex, randomIndex } from '../../../src/stats/repeats.ts';
import { countFinished } from '../../../test/daemon/sharing.ts';
import { caseIds, type FleetHere } from './fleet-here.ts';
import { capacity, startAll } from './overhead.ts';

export interface Faulted {
  trials: number;
  seed: number;
  seconds: number;
  /** What happened, in order. */
  faults: string[];
  /** Trials that the service has a result of. */
  reported: number;
  lost: number;
  /**
   * Trials of which the service accepted different reports, or of which ledgers have delivered more than one.
   */
  reportedTwice: number;
  /** Trials that the service has as void. */
  voided: number;
  /** Trials that were run to the end more than once, and attempts that ended before their trial. */
  ranTwice: number;
  invalid: number;
}

/** Milliseconds that a killed server is away, at most: longer than workers hold their trials without it. */
const awayMs = 9_000;
const lookMs = 50;

/**
 * Runs trials without work on four workers. Kills a worker, or the server of the queue, at `count` random
 * moments. Counts at the service and in the ledgers what became of the trials. With the same seed, the same
 * processes are killed at the same progress.
 */
export async function throughFaults(
  fleet: FleetHere,
  { trials, count, seed }: { trials: number; count: number; seed: number },
): Promise<Faulted> {
  const random = randomIndex(seed);
  const faults: string[] = [];
  await startAll(fleet);
  const workers = fleet.workers;
  const startedAt = performance.now();
  const moments = Array.from({ length: count }, () => random(trials)).toSorted((one, other) => one - other);
  await fleet.runOnFleet({ trials, profile: 'noop' }, async (isOver) => {
    for (const moment of moments) {
      while (fleet.front.accepted.size < moment && !isOver()) await sleep(lookMs);
      faults.push(`${moment}: ${await fault(fleet, workers, random)}`);
    }
  });
  const seconds = (performance.now() - startedAt) / 1000;
  await fleet.drain();
  const { reported, voided } = await atService(fleet);
  const folders = workers.map((name) => fleet.dataFolderOf(name));
  const { twice: ranTwice, invalid } = countFinished(folders);
  return {
    trials,
    seed,
    seconds,
    faults,
    reported,
    voided,
    lost: trials - reported,
    ranTwice,
    invalid,
    reportedTwice: Math.max(twiceAtService(fleet), twiceDelivered(folders)),
  };
}

async function fault(fleet: FleetHere, workers: readonly string[], random: RandomIndex): Promise<string> {
  if (random(3) === 0) {
    const ms = random(awayMs);
    await fleet.temporal.kill();
    await sleep(ms);
    await fleet.temporal.start();
    return `the server, for ${ms} ms`;
  }
  const name = workers[random(workers.length)] ?? '';
  await fleet.killWorker(name);
  await fleet.startWorker(name, capacity);
  return `worker ${name}`;
}

async function atService(fleet: FleetHere): Promise<{ reported: number; voided: number }> {
  const statuses: string[] = [];
  for (const caseId of caseIds(fleet.mostCases)) {
    const { runs = [] } = (await fleet.front.ask('evals.runs.list', { caseId })) as {
      runs?: { trials?: { status: string }[] }[];
    };
    for (const { trials = [] } of runs) statuses.push(...trials.map(({ status }) => status));
  }
  const voided = statuses.filter((status) => status === 'voided').length;
  return { voided, reported: voided + statuses.filter((status) => status === 'reported').length };
}

function twiceAtService({ front }: FleetHere): number {
  return [...front.accepted.values()].filter(({ size }) => size > 1).length;
}

function twiceDelivered(folders: readonly string[]): number {
  const times = new Map<string, number>();
  for (const folder of folders) {
    using ledger = new Ledger(folder, systemClock);
    const delivered = ledger.records.all(
      `SELECT runs.id || '/' || trials.ordinal AS name
       FROM reports JOIN trials ON trials.key = reports.trial JOIN runs ON runs.key = trials.run
       WHERE reports.state = 'delivered'`,
    );
    for (const { name } of delivered) times.set(String(name), (times.get(String(name)) ?? 0) + 1);
  }
  return [...times.values()].filter((count) => count > 1).length;
}
