import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultFront } from '../../test/faults/fault-front.ts';
import type { DaemonProcess } from './daemon-process.ts';
import type { Feeder } from './feeder.ts';

/** One sample; a value is undefined if no daemon answered. */
export interface Sample {
  /** Seconds since the start. */
  at: number;
  memoryMiB: number | undefined;
  openFiles: number | undefined;
  /** Results that the service has not accepted, and the age of the oldest in seconds. */
  waiting: number | undefined;
  oldest: number | undefined;
  /** Trials whose report the service has accepted. */
  reported: number;
}

export interface Soaked {
  samples: Sample[];
  /** When the daemon was killed, in seconds. */
  killedAt: number[];
  concurrency: number;
}

const everyMs = 2_000;
/** Trials that wait at any time, so that the daemon never runs out of work between two polls. */
const backlog = 60;
/** For the work that is queued at the end; only for hangs. */
const graceSeconds = 900;

/** Keeps a daemon busy for this many minutes, kills it from time to time, and watches it. */
export async function soak(
  daemon: DaemonProcess,
  feeder: Feeder,
  front: FaultFront,
  { minutes, kills }: { minutes: number; kills: number },
): Promise<Soaked> {
  const samples: Sample[] = [];
  const killedAt: number[] = [];
  let concurrency = 0;
  daemon.start();
  const started = performance.now();
  const elapsed = () => (performance.now() - started) / 1000;
  const end = minutes * 60;
  // The work that is queued at the end runs too, so that each trial without a result is a lost one.
  while (elapsed() < end || front.accepted.size < feeder.trials) {
    if (elapsed() > end + graceSeconds)
      throw new Error(`the daemon has not come to an end: see ${daemon.log}`);
    const missing = backlog - (feeder.trials - front.accepted.size);
    if (missing > 0 && elapsed() < end) await feeder.queueTrials(missing);
    // If the daemon ends by itself, that is the result of the measurement.
    daemon.requireAlive();
    const status = await daemon.status();
    concurrency = status?.concurrency ?? concurrency;
    const process = status && daemon.sample();
    samples.push({
      at: rounded(elapsed()),
      memoryMiB: process && rounded(process.memoryMiB),
      openFiles: process?.openFiles,
      waiting: status?.outbox.queued,
      oldest: status && rounded((status.outbox.oldestMs ?? 0) / 1000),
      reported: front.accepted.size,
    });
    if (killedAt.length < kills && elapsed() > ((killedAt.length + 1) * end) / (kills + 1)) {
      await daemon.kill();
      killedAt.push(rounded(elapsed()));
      daemon.start();
    }
    await sleep(everyMs);
  }
  await daemon.drain();
  return { samples, killedAt, concurrency };
}

/** Rounded to a tenth. */
function rounded(number: number): number {
  return Math.round(number * 10) / 10;
}
