import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultFront } from '../../test/faults/fault-front.ts';
import type { DaemonProcess } from './daemon-process.ts';
import type { Feeder } from './feeder.ts';

const lookEveryMs = 50;

/**
 * Queues the runs. A daemon runs them and is killed `kills` times, spread over the work. Resolves with the
 * kills.
 */
export async function runsThroughKills(
  daemon: DaemonProcess,
  feeder: Feeder,
  front: FaultFront,
  { runs, kills, timeoutMs }: { runs: number; kills: number; timeoutMs: number },
): Promise<number> {
  await feeder.queueRuns(runs);
  const deadline = performance.now() + timeoutMs;
  daemon.start();
  let killed = 0;
  while (front.accepted.size < feeder.trials) {
    if (performance.now() > deadline) {
      throw new Error(
        `${front.accepted.size} of ${feeder.trials} trials were reported in time: see ${daemon.log}`,
      );
    }
    daemon.requireAlive();
    if (killed < kills && front.accepted.size >= ((killed + 1) * feeder.trials) / (kills + 1)) {
      await daemon.kill();
      killed++;
      daemon.start();
    }
    await sleep(lookEveryMs);
  }
  await daemon.drain();
  return killed;
}
