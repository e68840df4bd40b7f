import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { containerDamaged } from '../failure.ts';
import { watchEnd } from './end-watch.ts';
import { isNotedAsEnded, type RunningContainer } from './running-container.ts';

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
    if (!isOfEngine(thrown) || !(await ownEndOf(container))) throw thrown;
    throw containerDamaged(`The sandbox has ended by itself: ${messageOf(thrown)}`, thrown);
  }
}

/** How far a command has come. It sets these itself. */
export interface CommandLife {
  /** It runs in the container. */
  begun: boolean;
  /** It has ended, or Offsite is about to end it, which may take a restart of the container. */
  over: boolean;
}

interface EndedWith<T> {
  mayEndContainer?: boolean | undefined;
  killed: (by: OwnEnd) => T;
}

/**
 * The result of a command, which lives no longer than its container: `killed` makes its result if the
 * container was restarted meanwhile, or ended by itself while the command ran and `mayEndContainer`.
 */
export async function withContainer<T>(
  container: RunningContainer,
  { mayEndContainer = false, killed }: EndedWith<T>,
  run: (life: CommandLife) => Promise<T>,
): Promise<T> {
  const { restarts } = container;
  const wasRestarted = () => container.restarts !== restarts;
  const life: CommandLife = { begun: false, over: false };
  try {
    return await run(life);
  } catch (thrown) {
    if (life.over || !isOfEngine(thrown)) throw thrown;
    const byRestart: OwnEnd = { oomKilled: false };
    if (wasRestarted()) return killed(byRestart);
    if (!life.begun || !mayEndContainer) throw thrown;
    const ownEnd = await ownEndOf(container);
    if (ownEnd) return killed(ownEnd);
    if (wasRestarted()) return killed(byRestart);
    throw thrown;
  }
}

function isOfEngine(thrown: unknown): thrown is OffsiteError {
  return thrown instanceof OffsiteError && thrown.kind === 'infrastructure';
}

/** How a container ended by itself. */
interface OwnEnd {
  /** Whether for lack of memory, as far as the engine knows. */
  oomKilled: boolean;
}

/** Undefined if it runs, or if a request to the engine ended it. */
async function ownEndOf(container: RunningContainer): Promise<OwnEnd | undefined> {
  const { canEndItself, ends, port, id } = container;
  try {
    if (canEndItself && !(await isNotedAsEnded(container))) return undefined;
    const { isRunning, oomKilled } = await port.containers.state(id);
    // No process inside can end Offsite's own first process, but the kernel may choose it if memory is short,
    // and any process that is root can make that likely.
    const isOwn = canEndItself
      ? ends === undefined || (await ends.endedByItself())
      : !isRunning && oomKilled && !(await wasRequested(container));
    return isOwn ? { oomKilled } : undefined;
  } catch (thrown) {
    if (thrown instanceof OffsiteError) return undefined;
    throw thrown;
  }
}

/** Whether a request to the engine may have ended the container. Takes a wait. */
async function wasRequested({ port, id, reportsEvents }: RunningContainer): Promise<boolean> {
  if (!reportsEvents) return false;
  using watch = watchEnd(port, id);
  return !(await watch.endedByItself());
}
