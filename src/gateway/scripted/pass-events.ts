import type { Clock } from '../../base/clock.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import type { Trouble } from '../../suite/script-file.ts';
import { textOfEvent, type WireEvent } from '../wires/wire-event.ts';

type Cut = Extract<Trouble, { cut: unknown }>['cut'];
type Bytes = AsyncIterable<Uint8Array>;

export function bytesOf(event: WireEvent): Buffer {
  return Buffer.from(textOfEvent(event));
}

/**
 * Yields chunk by chunk, and waits `pause` milliseconds after each. Throws the signal's reason when it
 * aborts.
 */
export async function* paced(
  chunks: Iterable<Uint8Array>,
  pause: number | undefined,
  clock: Clock,
  signal: AbortSignal,
): Bytes {
  for (const chunk of chunks) {
    signal.throwIfAborted();
    yield chunk;
    if (pause !== undefined) await clock.sleep(pause, signal);
  }
}

/** Cuts the stream after a number of bytes or chunks, whichever comes first. */
export async function* cutShort(chunks: Bytes, { afterBytes, afterEvents, cleanly }: Cut): Bytes {
  let bytesLeft = afterBytes ?? Number.POSITIVE_INFINITY;
  let eventsLeft = afterEvents ?? Number.POSITIVE_INFINITY;
  for await (const chunk of chunks) {
    if (eventsLeft === 0 || bytesLeft === 0) break;
    yield chunk.length > bytesLeft ? chunk.subarray(0, bytesLeft) : chunk;
    bytesLeft = Math.max(0, bytesLeft - chunk.length);
    eventsLeft -= 1;
  }
  if (cleanly) return;
  throw new OffsiteError('the script cuts the connection here', {
    code: 'SCRIPTED_CUT',
    kind: 'infrastructure',
  });
}

/** Endless text: the answer's beginning, then the same event repeatedly. */
export function* endless(events: Iterable<WireEvent>): Iterable<Uint8Array> {
  let delta: Buffer | undefined;
  for (const event of events) {
    const bytes = bytesOf(event);
    yield bytes;
    if (!event.isText) continue;
    delta = bytes;
    break;
  }
  while (true) yield delta ?? Buffer.from(': still here\n\n');
}

/** Neither JSON, nor events, nor UTF-8. */
export const garbage = Buffer.concat([
  Buffer.from('data: {"choices": [{"delta": \n\n<html>Bad gateway</html>\n'),
  Buffer.from([0xff, 0xfe, 0x00, 0xc3, 0x28]),
  Buffer.from('\nevent: \ndata: ]}{\n\n'),
]);
