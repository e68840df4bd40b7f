import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { processEnds } from '../../bounds/sandbox.ts';
import type { RunningContainer } from '../container/running-container.ts';
import { startDeadline } from '../deadline.ts';
import { engineFailure } from '../failure.ts';

interface EngineEvent {
  Action: string;
  Actor?: { Attributes?: Record<string, string> };
}

/**
 * Whether the engine noticed that the kernel killed a process of this container for memory since the exec `execId` began. The
 * engine's events need no process inside the container and nothing of its image; but they are slower than the counter, and "no"
 * is only known after a wait. One round trip.
 */
export async function oomEventSince(container: RunningContainer, execId: string): Promise<boolean> {
  const { client, id } = container;
  const doing = "reading the engine's events";
  // The order of the events tells what came first, so that the clocks of two machines need not agree.
  const filters = JSON.stringify({ container: [id], event: ['oom', 'exec_start'] });
  using deadline = startDeadline(client.clock, processEnds.time.memoryEvent);
  const stream = (await client.call(doing, (abortSignal) =>
    client.docker.getEvents({ since: 1, filters, abortSignal }),
  )) as Readable;
  let began = false;
  let killed = false;
  const read = async () => {
    for await (const { Action, Actor } of events(stream)) {
      if (Action === 'oom') {
        killed = true;
        if (began) return;
      } else if (Actor?.Attributes?.execID === execId) {
        began = true;
        // What was killed before it began is not its own. An engine keeps the last few hundred events: where the beginning is
        // among those lost, so is all that came before it.
        killed = false;
      }
    }
  };
  const reading = read();
  // Ended by us at the deadline; what it says then is of no interest.
  reading.catch(() => undefined);
  try {
    await Promise.race([reading, deadline.reached]);
    return killed;
  } catch (thrown) {
    throw engineFailure(doing, thrown);
  } finally {
    stream.destroy();
  }
}

/** One JSON object a line. */
async function* events(stream: AsyncIterable<unknown>): AsyncGenerator<EngineEvent> {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  for await (const chunk of stream) {
    const lines = (rest + decoder.write(chunk as Buffer)).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.trim() !== '') yield JSON.parse(line) as EngineEvent;
  }
}
