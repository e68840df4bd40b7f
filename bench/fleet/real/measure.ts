import { throughFaults } from './faults.ts';
import { type BenchSuite, endOnSignal, FleetHere } from './fleet-here.ts';
import { type Compared, compared, realBatch } from './model-check.ts';
import { capacity, measureOverhead } from './overhead.ts';
import { printCompared, printMemory, printOverhead } from './print-real.ts';
import { workerMemory } from './worker-memory.ts';

export interface RealOptions {
  trials: number;
  rounds: number;
  json: boolean;
}

/** The highest overhead with which the measurement passes. */
const mostOverhead = 1.15;
/** The highest memory of a worker, in MiB, with which the measurement passes. */
const mostMemory = 250;
/** Trials for each worker in the comparison with the model. */
const napsEach = 20;

/**
 * Measures a real fleet on this machine: overhead, the model, memory. Resolves with whether overhead and
 * memory pass.
 */
export async function measureReal({ trials, rounds, json }: RealOptions): Promise<boolean> {
  await using fleet = await FleetHere.open();
  using _ends = endOnSignal(fleet);
  const overhead = await measureOverhead(fleet, trials, rounds);
  if (!json) printOverhead(overhead);
  const noop = await realBatch(fleet, { trials, profile: 'noop' });
  await fleet.drain();
  const { events, bytes, largestPayload } = noop.history;
  const history = { events: events / trials, bytes: bytes / trials, largestPayload };
  const model = [compared(noop, noop, capacity), ...(await naps(fleet, Math.min(napsEach, trials)))];
  if (!json) printCompared(model);
  const memory = await workerMemory(fleet, Math.min(40, trials));
  if (json) console.log(JSON.stringify({ overhead, history, model, memory }));
  else {
    printMemory(memory);
    console.log(
      `\nhistory of a trial: ${history.events.toFixed(1)} events, ${history.bytes.toFixed(0)} bytes`,
    );
    console.log(`largest payload: ${largestPayload} bytes`);
  }
  return overhead.overhead <= mostOverhead && memory.every(({ most }) => most < mostMemory);
}

/** Runs trials that need no processor. What one worker shows is used to predict one, two and four. */
async function naps(fleet: FleetHere, each: number): Promise<Compared[]> {
  const run = async (workers: number) => {
    for (let worker = 1; worker <= workers; worker++) await fleet.startWorker(String(worker), capacity);
    const suite: BenchSuite = { trials: each * workers, profile: 'napping' };
    const batch = await realBatch(fleet, suite);
    await fleet.drain();
    return batch;
  };
  const one = await run(1);
  const all = [one, await run(2), await run(4)];
  return all.map((real) => compared(real, one, capacity));
}

/**
 * A real fleet whose workers and server are killed. Resolves with whether no trial was lost or reported
 * twice.
 */
export async function measureFaults(options: {
  trials: number;
  faults: number;
  seed: number;
  json: boolean;
}): Promise<boolean> {
  const { trials, faults: count, seed, json } = options;
  await using fleet = await FleetHere.open({ heartbeat: '10s', lease: '5s' });
  using _ends = endOnSignal(fleet);
  const faulted = await throughFaults(fleet, { trials, count, seed });
  if (json) console.log(JSON.stringify(faulted));
  else console.log(faulted);
  return faulted.lost === 0 && faulted.reportedTwice === 0;
}
