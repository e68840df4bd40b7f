import { processEnds } from '../../bounds/sandbox.ts';
import { startDeadline } from '../../deadline.ts';
import type { RunningContainer } from '../container/running-container.ts';

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
    } else if (event.execId === execId) {
      began = true;
      // Ignore kills from before the exec began. The engine keeps only the last few hundred events: if the
      // exec's start event is lost, so are all events before it.
      killed = false;
    }
  }
  return killed;
}
