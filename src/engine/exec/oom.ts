import { startDeadline } from '../../base/deadline.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { processEnds } from '../../bounds/sandbox.ts';
import { readGroupFile } from '../container/group-file.ts';
import type { RunningContainer } from '../container/running-container.ts';
import { outputOf } from './run-quietly.ts';

/**
 * Both files have a line `oom_kill N`. An exec'd child that is killed for memory leaves `OOMKilled: false` in
 * the engine's answer.
 */
const killCount = {
  controller: 'memory',
  version1: 'memory.oom_control',
  version2: 'memory.events',
} as const;

/** Error codes of containers in which nothing can run any more. */
const unusableContainerCodes = ['ENGINE_CONTAINER_DAMAGED', 'ENGINE_CONTAINER_STOPPED'];

/**
 * Whether the kernel killed a process of this container for memory since the last call; `execId` is the exec
 * in question. Uses one exec where the kernel's counter cannot be read from outside, and the engine's events
 * if that fails: memory may still be full (files in /dev/shm count), so that the kernel kills the process
 * that reads the counter.
 */
export async function oomKilledSinceLastAsked(container: RunningContainer, execId: string): Promise<boolean> {
  return noteOomKills(container, await readCounter(container), execId);
}

/** The same, for a counter that was read in another way. NaN means that it could not be read. */
export async function noteOomKills(
  container: RunningContainer,
  counter: number,
  execId: string,
): Promise<boolean> {
  const before = container.oomKills;
  // If it cannot be read now, the next reading cannot tell which kills are old.
  container.oomKills = Number.isNaN(counter) ? undefined : counter;
  if (before === undefined || container.oomKills === undefined) return oomEventSince(container, execId);
  return counter > before;
}

async function readCounter(container: RunningContainer): Promise<number> {
  try {
    const text = (await readGroupFile(container, killCount)) ?? (await fromInside(container));
    return Number(/^oom_kill (\d+)$/m.exec(text)?.[1]);
  } catch (thrown) {
    // A command that broke its container still has a result.
    if (thrown instanceof OffsiteError && unusableContainerCodes.includes(thrown.code)) return Number.NaN;
    throw thrown;
  }
}

async function fromInside(container: RunningContainer): Promise<string> {
  return container.own === undefined ? '' : outputOf(container, [container.own.init]);
}

/**
 * Whether the engine noticed that the kernel killed a process of this container for memory since the exec
 * `execId` began. The engine's events need no process inside the container and nothing from its image. But
 * they are slower than the counter, and "no" takes a wait. One round trip.
 */
export async function oomEventSince({ port, id }: RunningContainer, execId: string): Promise<boolean> {
  using deadline = startDeadline(port.clock, processEnds.time.memoryEvent);
  // Uses the order of the events, so the clocks of the two machines need not agree.
  let began = false;
  let killed = false;
  for await (const event of port.containers.events(id, deadline.signal)) {
    if (event.kind === 'oom') {
      killed = true;
      if (began) break;
    } else if (event.kind === 'exec-started' && event.execId === execId) {
      began = true;
      // Ignore kills from before the exec began. The engine keeps only the last few hundred events: if the
      // exec's start event is lost, so are all events before it.
      killed = false;
    }
  }
  return killed;
}
