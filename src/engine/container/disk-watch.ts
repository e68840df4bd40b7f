import { diskMeasure } from '../../bounds/sandbox.ts';
import type { OffsiteError } from '../../offsite-error.ts';
import { diskReserveReached, diskSpace } from './disk-space.ts';
import { diskUse, fastKill, processIds, spaceOf } from './disk-use.ts';
import { freeze } from './group-file.ts';
import { hostFactsOf } from './host-facts.ts';
import type { RunningContainer } from './running-container.ts';

export interface DiskWatch extends Disposable {
  /**
   * Resolves when the container takes more of the disk than its limit; rejects if that cannot be measured,
   * and with `DISK_FULL` when the machine's own reserve is reached. Never settles without a limit.
   */
  readonly exceeded: Promise<'out-of-disk'>;
}

/**
 * Watches how much of the engine's disk a container takes. Few engines can limit that (it needs project
 * quotas), so this notices an excess late: where the disk is visible, after a few megabytes; else after up to
 * a second. /dev/shm counts as memory instead.
 */
export function watchDisk(container: RunningContainer, limit: number | undefined): DiskWatch {
  const stop = new AbortController();
  const exceeded = Promise.withResolvers<'out-of-disk'>();
  if (limit !== undefined && Number.isFinite(limit))
    look(container, limit, stop.signal, exceeded).catch(exceeded.reject);
  // It is raced against the end of a command, which may come first.
  exceeded.promise.catch(() => undefined);
  return { exceeded: exceeded.promise, [Symbol.dispose]: () => stop.abort() };
}

type Settle = Pick<PromiseWithResolvers<'out-of-disk'>, 'resolve' | 'reject'>;

/** Settles before it kills, so that the killed command does not seem to have ended by itself. */
async function look(container: RunningContainer, limit: number, signal: AbortSignal, settle: Settle) {
  container.diskSeen ??= { used: 0, before: await spaceOf(container, signal) };
  for (;;) {
    const due = await untilDue(container, limit, signal);
    if (due === 'reserve') {
      const kill = await fastKill(container);
      settle.reject(await reserveReached(container));
      return kill();
    }
    // While a measurement takes 20 ms, processes write 50 MB. An engine starts no command in a container that
    // is stopped, so this is only done once the only command runs.
    const mayFreeze = due === 'filling' && container.activeExecs.size === 1;
    const isFrozen = mayFreeze && (await processIds(container)).length > 1 && (await freeze(container, true));
    try {
      if ((await diskUse(container, signal)) <= limit) continue;
      const kill = await fastKill(container);
      settle.resolve('out-of-disk');
      return kill();
    } finally {
      if (isFrozen) await freeze(container, false);
    }
  }
}

/**
 * Waits until a container may have exceeded its limit. To measure it takes milliseconds; to read the free
 * space of its disk takes microseconds, and that shrinks with all that is written there, by anybody. So the
 * container is measured once the disk has lost as much as it had left, and once a second in any case.
 */
async function untilDue(
  container: RunningContainer,
  limit: number,
  signal: AbortSignal,
): Promise<'time' | 'filling' | 'reserve'> {
  const { clock } = container.port;
  const { used, before } = container.diskSeen ?? { used: limit, before: undefined };
  if (before === undefined) {
    await clock.sleep(diskMeasure.time.look, signal);
    return 'time';
  }
  const lost = Math.max(limit - used, diskMeasure.bytes.unnoticed);
  let last = before.freeBytes;
  for (let wait = diskMeasure.time.glance, waited = 0; waited < diskMeasure.time.look; waited += wait) {
    await clock.sleep(wait, signal);
    const now = await spaceOf(container, signal);
    if (now === undefined) return 'time';
    if (before.freeBytes - now.freeBytes >= lost) return 'filling';
    if (now.freeBytes < now.reserveBytes + diskMeasure.bytes.margin) return 'reserve';
    // While the disk fills fast, look more often.
    wait =
      last - now.freeBytes > diskMeasure.bytes.quiet ? diskMeasure.time.quickGlance : diskMeasure.time.glance;
    last = now.freeBytes;
  }
  return 'time';
}

async function reserveReached(container: RunningContainer): Promise<OffsiteError> {
  const [folder = ''] = (await hostFactsOf(container)).storage;
  const now = (await diskSpace(folder)) ?? { freeBytes: 0, reserveBytes: 0 };
  return diskReserveReached(folder, now, 'the trials that run there are ended');
}
