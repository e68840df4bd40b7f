import { once } from 'node:events';
import type Docker from 'dockerode';
import { OffsiteError } from '../offsite-error.ts';

/** How long the engine may take to look an image up, in milliseconds. */
const deadlineMs = 30_000;

/** The engine's id of an image, or undefined when it has none of that name. */
export async function imageId(
  docker: Docker,
  name: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  // dockerode's inspect takes no signal, so the wait is given up here.
  const late = AbortSignal.timeout(deadlineMs);
  const stop = new AbortController();
  const given = AbortSignal.any(signal === undefined ? [late] : [late, signal]);
  given.throwIfAborted();
  const givenUp = once(given, 'abort', { signal: stop.signal }).then(() => Promise.reject(given.reason));
  givenUp.catch(() => 'told by the race below, or stopped because the answer came');
  try {
    const image = await Promise.race([docker.getImage(name).inspect(), givenUp]);
    return image.Id;
  } catch (error) {
    signal?.throwIfAborted();
    if ((error as { statusCode?: number }).statusCode === 404) return undefined;
    const message = `Could not ask the engine about the image ${name}.`;
    throw new OffsiteError(message, { code: 'ENGINE_REQUEST_FAILED', kind: 'infrastructure', cause: error });
  } finally {
    stop.abort();
  }
}
