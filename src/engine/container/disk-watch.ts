import { infrastructureError, type OffsiteError } from '../../base/offsite-error.ts';
import { diskMeasure } from '../../bounds/sandbox.ts';
import { areFilesShort, type DiskSpace, diskReserveReached, isReserveReached } from './disk-space.ts';
import { diskUse, fastKill, fileCount, isDiskVisible, processIds, spaceOf } from './disk-use.ts';
import { freeze } from './hosts-file.ts';
import { hostFactsOf, type RunningContainer } from './running-container.ts';

interface DiskWatch extends Disposable {
  /**
   * Resolves when the container takes more of the disk than its limit; rejects if that cannot be measured,
   * and with `DISK_FULL` when the machine's own reserve is reached. Never settles without a limit.
   */
  readonly exceeded: Promise<'out-of-disk'>;
}

const over = new Error('the disk is no longer watched');

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
  return { exceeded: exceeded.promise, [Symbol.dispose]: () => stop.abort(over) };
}

/**
 * Does work by which the engine writes into a container, such as unpacking an archive, while the container's
 * disk is watched. Throws `ENGINE_TOO_LARGE` once that took more than `maxBytes`, and `DISK_FULL` when the
 * machine's own reserve is reached; the signal of the work aborts then.
 */
export async function whileFilling<T>(
  container: RunningContainer,
  { maxBytes, signal }: { maxBytes: number; signal?: AbortSignal | undefined },
  fill: (signal?: AbortSignal) => Promise<T>,
): Promise<T> {
  // Elsewhere only the archive itself is bounded.
  if (!(await isDiskVisible(container, signal))) return fill(signal);
  const limit = (await diskUse(container, signal)) + maxBytes + diskMeasure.bytes.margin;
  using watch = watchDisk(container, limit);
  const stop = new AbortController();
  const filled = fill(signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]));
  try {
    const first = await Promise.race([filled.then((value) => ({ value })), watch.exceeded]);
    if (first !== 'out-of-disk') return first.value;
    throw infrastructureError(
      'ENGINE_TOO_LARGE',
      `what is copied takes more than ${maxBytes} bytes of the disk`,
    );
  } finally {
    stop.abort(new Error('the copy has ended'));
    await filled.catch(() => undefined);
  }
}

type Settle = Pick<PromiseWithResolvers<'out-of-disk'>, 'resolve' | 'reject'>;

/** Settles before it kills, so that the killed command does not seem to have ended by itself. */
async function look(container: RunningContainer, limit: number, signal: AbortSignal, settle: Settle) {
  container.diskSeen ??= { used: 0, before: await spaceOf(container, signal) };
  // The storage's own quota is exact, and the engine's count is not.
  if (container.hasQuota && container.diskSeen.before === undefined) return;
  for (;;) {
    const due = await untilDue(container, limit, signal);
    // While a measurement takes 20 ms, processes write 50 MB. An engine starts no command in a container that
    // is stopped, so this is only done once the only command runs.
    const mayFreeze = due !== 'time' && container.activeExecs.size === 1;
    const isFrozen = mayFreeze && (await processIds(container)).length > 1 && (await freeze(container, true));
    try {
      // It may have exceeded its own limit at the moment at which the reserve is reached.
      const exceeds = (await diskUse(container, signal)) > limit;
      const short = due === 'reserve' ? await spaceOf(container, signal) : undefined;
      if (!exceeds && (short === undefined || !isReserveReached(short))) continue;
      const isOwnFault = exceeds || (await filesExceed(container, limit, short, signal));
      const kill = await fastKill(container);
      if (isOwnFault) settle.resolve('out-of-disk');
      else settle.reject(await reserveReached(container));
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
    if (isReserveReached(now)) return 'reserve';
    // While the disk fills fast, look more often.
    wait =
      last - now.freeBytes > diskMeasure.bytes.quiet ? diskMeasure.time.quickGlance : diskMeasure.time.glance;
    last = now.freeBytes;
  }
  return 'time';
}

/**
 * Whether the container's files are the reason why the disk has no room for more files. Empty files take no
 * blocks, but each takes its share of the disk. Only then is it counted: honest agents make many small files.
 */
async function filesExceed(
  container: RunningContainer,
  limit: number,
  short: DiskSpace | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  if (short === undefined || !areFilesShort(short)) return false;
  return ((await fileCount(container, signal)) ?? 0) * short.bytesPerFile > limit;
}

async function reserveReached(container: RunningContainer): Promise<OffsiteError> {
  const [folder = ''] = (await hostFactsOf(container)).storage;
  const space = await spaceOf(container);
  if (space === undefined) throw new Error(`${folder} is not visible any more`);
  return diskReserveReached(folder, space, 'the trials that run there are ended');
}
