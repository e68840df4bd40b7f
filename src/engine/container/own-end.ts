import { processEnds } from '../../bounds/sandbox.ts';
import { OffsiteError } from '../../offsite-error.ts';
import { execLost } from '../port/failure.ts';
import { watchEnd } from './end-watch.ts';
import { isNotedAsEnded } from './noted-end.ts';
import type { RunningContainer } from './running-container.ts';

/**
 * From the next start on, processes in the container may be able to end it; see `canEndItself`. No round trip
 * to wait for.
 */
export function expectOwnEnd(container: RunningContainer): void {
  container.canEndItself = true;
  if (container.reportsEvents) container.ends ??= watchEnd(container.port, container.id);
}

/** Ends the request to the engine. After that, a container that can end itself counts as one that did. */
export function stopWatching(container: RunningContainer): void {
  container.ends?.[Symbol.dispose]();
  container.ends = undefined;
}

/** How a container ended by itself. */
export interface OwnEnd {
  /** Whether the kernel ended it for lack of memory, as far as the engine knows. */
  oomKilled: boolean;
}

/**
 * How the container ended, if `thrown` was thrown because it has ended by itself: an agent that ends its
 * sandbox must not count as trouble of the engine. Where the engine has no events, nobody knows who ended the
 * container, and it counts as the agent.
 */
export async function ownEndBehind(
  container: RunningContainer,
  thrown: unknown,
): Promise<OwnEnd | undefined> {
  const isOfEngine = thrown instanceof OffsiteError && thrown.kind === 'infrastructure';
  if (!isOfEngine) return undefined;
  const { canEndItself, ends, port, id } = container;
  try {
    const { isRunning, oomKilled } = await port.containers.state(id);
    // No process inside can end Offsite's own first process, but the kernel may choose it if memory is short,
    // and any process that is root can make that likely.
    if (!canEndItself) return !isRunning && oomKilled ? { oomKilled } : undefined;
    if (!(await isNotedAsEnded(container))) return undefined;
    if (ends !== undefined && !(await ends.endedByItself())) return undefined;
    return { oomKilled: (await port.containers.state(id)).oomKilled };
  } catch (failure) {
    if (failure instanceof OffsiteError) return undefined;
    throw failure;
  }
}

/** Watches for the end of a container while a command runs in it. */
export interface LossWatch extends Disposable {
  /**
   * Rejects if the container has ended and the command has had a moment to end too. Otherwise pending for
   * good.
   */
  readonly lost: Promise<never>;
}

/**
 * Docker 20.10 with gVisor may never end the stream of a command whose container has ended by itself. Without
 * the engine's events this watches nothing.
 */
export function watchLoss({ ends, port, id }: RunningContainer): LossWatch {
  const { promise: lost, reject } = Promise.withResolvers<never>();
  lost.catch(() => undefined);
  const stop = new AbortController();
  const watch = async (watched: NonNullable<typeof ends>) => {
    do {
      await watched.ended();
      await port.clock.sleep(processEnds.time.containerNoted, stop.signal);
      // The event of a start that followed may be on its way.
    } while ((await port.containers.state(id, stop.signal)).isRunning);
    throw execLost('The container ended while a command ran in it.');
  };
  if (ends) watch(ends).catch(reject);
  return { lost, [Symbol.dispose]: () => stop.abort() };
}
