import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { parseForeignJson } from '../../base/parse-json.ts';
import type { ContainerEvent } from '../port/containers.ts';
import type { DockerClient } from './client.ts';
import { requestFailure } from './failure.ts';

interface EngineEvent {
  Action: string;
  Actor?: { Attributes?: Record<string, string> };
}

const doing = "reading the engine's events";

/** Events by Docker's names. It also kills a container in order to stop it. */
const kinds: Readonly<Record<string, ContainerEvent['kind']>> = {
  start: 'started',
  oom: 'oom',
  exec_start: 'exec-started',
  kill: 'kill-requested',
  die: 'ended',
};

/** The events of a container. The engine keeps the last few hundred of all containers. */
export async function* containerEvents(
  client: DockerClient,
  id: string,
  signal: AbortSignal,
): AsyncGenerator<ContainerEvent> {
  const filters = JSON.stringify({ container: [id], event: Object.keys(kinds) });
  const stream = (await client.call(doing, (abortSignal) =>
    client.docker.getEvents({ since: 1, filters, abortSignal }),
  )) as Readable;
  const end = () => stream.destroy();
  signal.addEventListener('abort', end, { once: true });
  try {
    if (signal.aborted) return;
    for await (const { Action, Actor } of eventsOf(stream)) {
      // An exec's action has its command after a colon.
      const kind = kinds[Action.split(':', 1)[0] ?? ''];
      if (kind === 'exec-started') yield { kind, execId: Actor?.Attributes?.execID ?? '' };
      else if (kind !== undefined) yield { kind };
    }
  } catch (thrown) {
    if (!signal.aborted) throw requestFailure(doing, thrown);
  } finally {
    signal.removeEventListener('abort', end);
    stream.destroy();
  }
}

/** One JSON object per line. */
async function* eventsOf(stream: AsyncIterable<unknown>): AsyncGenerator<EngineEvent> {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  for await (const chunk of stream) {
    const lines = (rest + decoder.write(chunk as Buffer)).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.trim() !== '') yield parseForeignJson(line) as EngineEvent;
  }
}
