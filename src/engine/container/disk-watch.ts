import { processEnds } from '../../bounds/sandbox.ts';
import type { RunningContainer } from './running-container.ts';

export interface DiskWatch extends Disposable {
  /**
   * Resolves when the container has written more than its limit; rejects if the engine cannot tell. Never
   * settles without a limit.
   */
  readonly exceeded: Promise<'out-of-disk'>;
}

/**
 * Watches how much a container has written to its own layer. Few engines can limit that (it needs xfs with
 * project quotas), so this notices an excess up to a second late. /dev/shm counts as memory instead.
 */
export function watchDisk(container: RunningContainer, limit: number | undefined): DiskWatch {
  const stop = new AbortController();
  const isLimited = limit !== undefined && Number.isFinite(limit);
  const exceeded = isLimited ? look(container, limit, stop.signal) : new Promise<never>(() => undefined);
  // It is raced against the end of a command, which may come first.
  exceeded.catch(() => undefined);
  return { exceeded, [Symbol.dispose]: () => stop.abort() };
}

async function look(container: RunningContainer, limit: number, signal: AbortSignal): Promise<'out-of-disk'> {
  do await container.port.clock.sleep(processEnds.time.diskLook, signal);
  while ((await container.port.containers.writtenBytes(container.id, signal)) <= limit);
  return 'out-of-disk';
}
