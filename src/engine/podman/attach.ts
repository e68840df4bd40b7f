import type { Duplex } from 'node:stream';
import { ProgramStream } from '../docker/attach.ts';
import type { DockerClient } from '../docker/client.ts';
import type { AttachRequest } from '../port/containers.ts';
import { hijack } from './bare-request.ts';

/** Connects to the standard streams of a container's program. One round trip. */
export async function attachProgram(
  client: DockerClient,
  id: string,
  { onStderr, waitsForReader, signal }: AttachRequest,
): Promise<Duplex> {
  const path = `/containers/${id}/attach?stream=true&stdin=true&stdout=true&stderr=true`;
  const socket = await client.call(
    'attaching to a container',
    (abortSignal) => hijack(client, path, abortSignal),
    { signal },
  );
  return new ProgramStream(socket, onStderr, waitsForReader);
}
