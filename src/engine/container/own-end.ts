import { messageOf, OffsiteError } from '../../offsite-error.ts';
import { containerDamaged } from '../failure.ts';
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

/**
 * The result of work in a container. If it failed because the container has ended by itself, this throws
 * `ENGINE_CONTAINER_DAMAGED`: an agent that ends its sandbox must not count as trouble of the engine. Where
 * the engine has no events, nobody knows who ended the container, and it counts as the agent.
 */
export async function blamedOnEnd<T>(container: RunningContainer, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (thrown) {
    const isOfEngine = thrown instanceof OffsiteError && thrown.kind === 'infrastructure';
    if (!isOfEngine || !(await hasEndedItself(container))) throw thrown;
    throw containerDamaged(`The sandbox has ended by itself: ${messageOf(thrown)}`, thrown);
  }
}

async function hasEndedItself(container: RunningContainer): Promise<boolean> {
  const { canEndItself, ends, port, id } = container;
  try {
    const { isRunning, oomKilled } = await port.containers.state(id);
    // No process inside can end Offsite's own first process, but the kernel may choose it if memory is short,
    // and any process that is root can make that likely.
    if (!canEndItself) return !isRunning && oomKilled;
    return (await isNotedAsEnded(container)) && (ends === undefined || (await ends.endedByItself()));
  } catch (thrown) {
    if (thrown instanceof OffsiteError) return false;
    throw thrown;
  }
}
