import type { Scenario } from '../model/scenario.ts';
import { usual } from '../model/scenario.ts';
import { simulate } from '../model/simulate.ts';
import type { BenchSuite, FleetHere } from './fleet-here.ts';
import { type BatchHistory, readHistory } from './history.ts';
import { serverCounts } from './server-counts.ts';

/** A batch that really ran, with what the model needs to know of it. Times are in seconds. */
export interface RealBatch {
  workers: number;
  trials: number;
  profile: BenchSuite['profile'];
  /** From the start of its workflow until its last report. */
  makespan: number;
  history: BatchHistory;
  /** Mean time of a change of a workflow's state in the database. */
  change: number;
  heartbeatsPerTrial: number;
}

export interface Compared {
  workers: number;
  trials: number;
  profile: string;
  model: number;
  real: number;
  /** Model / real. */
  ratio: number;
}

/** Simulations of one scenario, with different seeds. */
const seeds = 20;

/** Runs a batch on the workers that the fleet has, and reads what the model needs. */
export async function realBatch(fleet: FleetHere, suite: BenchSuite): Promise<RealBatch> {
  const before = await serverCounts(fleet.temporal.metrics);
  const { id, reportedAt } = await fleet.runOnFleet(suite);
  const after = await serverCounts(fleet.temporal.metrics);
  const counted = (key: string) => (after.get(key) ?? 0) - (before.get(key) ?? 0);
  const history = await readHistory(fleet.client, id);
  const { trials, profile } = suite;
  return {
    workers: fleet.workers.length,
    trials,
    profile,
    history,
    makespan: (performance.timeOrigin + Math.max(...reportedAt)) / 1000 - history.startedAt,
    change: counted('change seconds') / counted('database UpdateWorkflowExecution'),
    heartbeatsPerTrial: counted('request RecordActivityTaskHeartbeat') / trials,
  };
}

/** What the model says about a batch, from what was measured in another batch, or in the same one. */
export function compared(real: RealBatch, measured: RealBatch, capacity: number): Compared {
  const { workers, trials, profile, makespan } = real;
  const scenario = scenarioOf(measured, { workers, trials, capacity });
  const makespans = Array.from({ length: seeds }, (_, seed) => simulate({ ...scenario, seed }).makespan);
  const model = makespans.reduce((sum, one) => sum + one) / seeds;
  return { workers, trials, profile, model, real: makespan, ratio: model / makespan };
}

function scenarioOf(
  { history, change, heartbeatsPerTrial }: RealBatch,
  size: Pick<Scenario, 'workers' | 'trials' | 'capacity'>,
): Scenario {
  const { services, tasks } = history;
  const mean = meanOf(services);
  const spread = Math.sqrt(meanOf(services.map((one) => (one - mean) ** 2))) / mean;
  return {
    ...usual,
    ...size,
    trial: { mean, spread, most: Math.max(...services) },
    failure: { meanUp: Number.POSITIVE_INFINITY, down: 0 },
    // The first one is a part of taking a trial.
    heartbeat: { every: Number.POSITIVE_INFINITY, phases: Math.max(0, heartbeatsPerTrial - 1), timeout: 60 },
    lanes: 1,
    window: 100,
    server: { ...usual.server, change, task: meanOf(tasks) },
  };
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}
