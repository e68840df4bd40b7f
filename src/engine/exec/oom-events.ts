import { processEnds } from '../../bounds/sandbox.ts';
import type { RunningContainer } from '../container/running-container.ts';
import { startDeadline } from '../deadline.ts';

/**
 * Whether the engine noticed that the kernel killed a process of this container for memory since the exec
 * `execId` began. The engine's events need no process inside the container and nothing of its image; but they
 * are slower than the counter, and "no" is only known after a wait. One round trip.
 */
export async function oomEventSince({ port, id }: RunningContainer, execId: string): Promise<boolean> {
  using deadline = startDeadline(port.clock, processEnds.time.memoryEvent);
  // The order of the events tells what came first, so the clocks of two machines need not agree.
  let began = false;
  let killed = false;
  for await (const event of port.containers.events(id, deadline.signal)) {
    if (event.kind === 'oom') {
      killed = true;
      if (began) break;
    } else if (event.execId === execId) {
      began = true;
      // What was killed before it began is not its own. An engine keeps the last few hundred events: where
      // the beginning is among those lost, so is all that came before it.
      killed = false;
    }
  }
  return killed;
}
