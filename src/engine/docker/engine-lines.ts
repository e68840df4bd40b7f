import type { Readable } from 'node:stream';
import { OffsiteError } from '../../base/offsite-error.ts';
import { parseForeignJson } from '../../base/parse-json.ts';

/** One line of the engine's stream while it pulls, builds or imports. */
export interface EngineLine {
  status?: string;
  stream?: string;
  error?: string;
  errorDetail?: { message?: string };
  aux?: { ID?: string };
  /** In a pull: the layer that the line is about. */
  id?: string;
  progressDetail?: { current?: number; total?: number };
}

export interface EngineLinesOptions {
  /** What the engine is doing, for errors: `pull node:24`. */
  purpose: string;
  /** How long the stream may be silent, in milliseconds. */
  silenceMs: number;
  signal?: AbortSignal | undefined;
  /** The error of a line that reports a failure. Default: an infrastructure error. */
  failure?: (message: string) => OffsiteError;
}

/**
 * Yields every line of such a stream to its end. The engine answers 200 before the work begins, so a failure
 * is a line too, often the last. This throws it as an infrastructure error, like a silent, cut or unreadable
 * stream. An abort throws the signal's reason.
 */
export async function* engineLines(
  stream: Readable,
  options: EngineLinesOptions,
): AsyncGenerator<EngineLine> {
  const { purpose, silenceMs, signal, failure = failed } = options;
  signal?.throwIfAborted();
  const silence = setTimeout(
    () => stream.destroy(failed(`Could not ${purpose}: the engine said nothing for ${silenceMs / 1000} s.`)),
    silenceMs,
  );
  const abort = () => stream.destroy(signal?.reason);
  signal?.addEventListener('abort', abort, { once: true });
  let seen = 0;
  try {
    for await (const text of textLines(stream)) {
      silence.refresh();
      if (text.trim() === '') continue;
      seen += 1;
      yield readLine(text, purpose, failure);
    }
    if (seen === 0) throw failed(`Could not ${purpose}: the engine's answer was empty.`);
  } catch (error) {
    if (error instanceof OffsiteError || signal?.aborted) throw error;
    throw failed(`Could not ${purpose}: the engine's answer was cut off.`, error);
  } finally {
    clearTimeout(silence);
    signal?.removeEventListener('abort', abort);
    stream.destroy();
  }
}

async function* textLines(stream: Readable): AsyncGenerator<string> {
  stream.setEncoding('utf8');
  let rest = '';
  for await (const chunk of stream) {
    const pieces = (rest + chunk).split('\n');
    rest = pieces.pop() ?? '';
    yield* pieces;
  }
  yield rest;
}

function readLine(text: string, purpose: string, failure: (message: string) => OffsiteError): EngineLine {
  let line: EngineLine;
  try {
    line = parseForeignJson(text) as EngineLine;
  } catch (cause) {
    throw failed(
      `Could not ${purpose}: the engine answered "${text.slice(0, 200)}", which is not JSON.`,
      cause,
    );
  }
  const problem = line.errorDetail?.message ?? line.error;
  if (problem !== undefined) throw failure(`Could not ${purpose}: ${problem}`);
  return line;
}

function failed(message: string, cause?: unknown): OffsiteError {
  return new OffsiteError(message, { code: 'IMAGE_FAILED', kind: 'infrastructure', cause });
}
