import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import { connectEngine } from '../../../src/engine/connect.ts';
import { floorTrial } from '../../overhead/floor.ts';
import { median } from '../../table.ts';
import type { BenchSuite, FleetHere, MeasuredBatch } from './fleet-here.ts';
import { perTrial, serverCounts } from './server-counts.ts';

export interface Overhead {
  trials: number;
  rounds: Round[];
  /** Medians over the rounds; `overhead` is that of their ratios. */
  floorSeconds: number;
  agentSeconds: number;
  fleetSeconds: number;
  overhead: number;
  trialsPerSecond: number;
  /** What one trial of the fleet costs the server: requests, uses of its database, billable actions. */
  perTrial: Record<string, number>;
}

/** Seconds that each of the three needed for all trials. */
export interface Round {
  floor: number;
  agent: number;
  fleet: number;
}

export const capacity = 2;
const workers = ['1', '2', '3', '4'];
const image = 'offsite/base';
/** Floors that a round measures, at most. Their mean stands for the floor of each trial. */
const floors = 40;

/**
 * Measures trials without work on four workers, next to one `offsite run` with as many trials at a time, and
 * next to the engine's own cost of their containers. The three alternate in each round. The workers stay, and
 * have no work while the others are measured.
 */
export async function measureOverhead(fleet: FleetHere, trials: number, rounds: number): Promise<Overhead> {
  const suite: BenchSuite = { trials, profile: 'noop' };
  const small: BenchSuite = { trials: 8, profile: 'noop' };
  await fleet.runHere(small, workers.length * capacity);
  await startAll(fleet);
  await fleet.runOnFleet({ trials: 40, profile: 'noop' });
  const measured: Round[] = [];
  let counted = new Map<string, number>();
  for (let round = 0; round < rounds; round++) {
    const floor = (await floorSeconds(Math.min(floors, trials))) * trials;
    const agent = secondsOf(await fleet.runHere(suite, workers.length * capacity));
    const before = await serverCounts(fleet.temporal.metrics);
    const ran = secondsOf(await fleet.runOnFleet(suite));
    counted = perTrial(before, await serverCounts(fleet.temporal.metrics), trials);
    measured.push({ floor, agent, fleet: ran });
  }
  const fleetSeconds = median(measured.map((round) => round.fleet));
  return {
    trials,
    rounds: measured,
    fleetSeconds,
    floorSeconds: median(measured.map(({ floor }) => floor)),
    agentSeconds: median(measured.map(({ agent }) => agent)),
    overhead: median(measured.map((round) => round.fleet / round.agent)),
    trialsPerSecond: trials / fleetSeconds,
    perTrial: Object.fromEntries(counted),
  };
}

export async function startAll(fleet: FleetHere): Promise<void> {
  await Promise.all(workers.map((name) => fleet.startWorker(name, capacity)));
}

/** Seconds that the engine alone needs for the containers of one trial, eight at a time. */
async function floorSeconds(count: number): Promise<number> {
  await using engine = await connectEngine({ instance: `bench-${randomUUID()}` });
  const found = await engine.findImage(image);
  if (!found) throw new Error(`the engine has no image ${image}: offsite engine base-image`);
  const limit = pLimit(workers.length * capacity);
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: count }, () => limit(() => floorTrial(engine, found.id, 'none'))));
  return (performance.now() - startedAt) / 1000 / count;
}

function secondsOf({ startedAt, reportedAt }: MeasuredBatch): number {
  return (Math.max(...reportedAt) - startedAt) / 1000;
}
