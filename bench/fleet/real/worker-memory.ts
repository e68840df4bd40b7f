import { setTimeout as sleep } from 'node:timers/promises';
import { memoryOf } from '../../memory/measured-run.ts';
import type { FleetHere } from './fleet-here.ts';

/** Resident memory of a worker, in MiB: without work, and the most with `inFlight` trials. */
export interface WorkerMemory {
  inFlight: number;
  idle: number;
  most: number;
}

const lookMs = 100;
/** Milliseconds after which a started worker is at rest. */
const settleMs = 5_000;

/** Measures workers that run two and eight trials at a time, one after another. */
export async function workerMemory(fleet: FleetHere, trialsEach: number): Promise<WorkerMemory[]> {
  const measured: WorkerMemory[] = [];
  for (const inFlight of [2, 8]) {
    const name = `memory-${inFlight}`;
    await fleet.startWorker(name, inFlight);
    await sleep(settleMs);
    const pid = fleet.pidOf(name);
    const idle = memoryOf(pid)?.now ?? Number.NaN;
    let most = idle;
    const looking = setInterval(() => {
      most = Math.max(most, memoryOf(pid)?.now ?? 0);
    }, lookMs);
    try {
      await fleet.runOnFleet({ trials: trialsEach, profile: 'napping' });
    } finally {
      clearInterval(looking);
    }
    measured.push({ inFlight, idle, most });
    await fleet.drain();
  }
  return measured;
}
