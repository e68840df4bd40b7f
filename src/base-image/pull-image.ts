import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { messageOf, OffsiteError } from '../offsite-error.ts';
import { engineLines } from './engine-lines.ts';

export interface PullOptions {
  docker: Docker;
  name: string;
  signal?: AbortSignal;
  /** How long the registry may take to its first word, in milliseconds. A cut-off network answers nothing. */
  firstWordMs?: number;
  /** How long it may be silent after that: a layer's extraction is not always reported. */
  silenceMs?: number;
}

/** Pulls an image through the engine. Throws an infrastructure `OffsiteError` saying why it could not. */
export async function pullImage(options: PullOptions): Promise<void> {
  const { docker, name, signal, firstWordMs = 15_000, silenceMs = 180_000 } = options;
  const stream = await firstWord(docker, name, firstWordMs, signal);
  for await (const _ of engineLines(stream, { purpose: `pull ${name}`, silenceMs, signal })) {
    // Progress bars of layers. What counts is that no line is an error, and that the stream ends.
  }
}

/** The engine sends its headers together with the first line, once the registry has answered. */
async function firstWord(docker: Docker, name: string, ms: number, signal?: AbortSignal): Promise<Readable> {
  signal?.throwIfAborted();
  const late = AbortSignal.timeout(ms);
  const abortSignal = signal === undefined ? late : AbortSignal.any([signal, late]);
  // The request keeps listening to this signal while its answer streams, so it must not be the one that times out.
  const request = new AbortController();
  const abort = () => request.abort(abortSignal.reason);
  abortSignal.addEventListener('abort', abort, { once: true });
  try {
    return (await docker.pull(name, { abortSignal: request.signal })) as Readable;
  } catch (cause) {
    signal?.throwIfAborted();
    const reason = late.aborted ? `no registry answered within ${ms / 1000} s` : engineMessage(cause);
    const message = `Could not pull ${name}: ${reason}`;
    throw new OffsiteError(message, { code: 'IMAGE_PULL_FAILED', kind: 'infrastructure', cause });
  } finally {
    abortSignal.removeEventListener('abort', abort);
  }
}

/** dockerode puts `(HTTP code 500) server error - ` before what the engine said. */
function engineMessage(error: unknown): string {
  return messageOf(error)
    .replace(/^\(HTTP code \d+\) [^-]*- /, '')
    .trim();
}
