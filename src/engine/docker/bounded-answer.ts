import { addAbortSignal, type Readable } from 'node:stream';
import type Docker from 'dockerode';
import { ByteStore } from '../../base/byte-store.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { DocumentTooHeavy, longestDocument, parseForeignJson } from '../../base/parse-json.ts';
import { engineAnswers } from '../../bounds/sandbox.ts';

type Dial = Docker['modem']['dial'];
type Options = Parameters<Dial>[0] & { abortSignal?: AbortSignal };
type Callback = (error: unknown, answer: unknown) => void;

/**
 * Bounds the size of every answer of the engine that is one document. docker-modem reads the whole answer,
 * however large, and a sandbox may choose its content: the paths that it changed, the command lines of its
 * processes. Readers of streamed answers set their own bounds.
 */
export function boundedDial(modemDial: Dial): Dial {
  const dial = modemDial as (options: Options, callback: Callback) => void;
  const bounded = (options: Options, callback: Callback) => {
    if (options.isStream || options.hijack || options.openStdin) return dial(options, callback);
    dial({ ...options, isStream: true, statusCodes: everyStatus }, (error, answer) => {
      if (error) return callback(error, null);
      read(answer as Answer, options).then(
        (document) => callback(null, document),
        (thrown: unknown) => callback(thrown, null),
      );
    });
  };
  return bounded as Dial;
}

type Answer = Readable & { statusCode: number };

/** docker-modem reads the whole body itself if an answer has a status that is not in this list. */
const everyStatus: Record<string, boolean> = new Proxy({}, { get: () => true });

async function read(answer: Answer, { statusCodes, abortSignal }: Options): Promise<unknown> {
  if (abortSignal) addAbortSignal(abortSignal, answer);
  const bytes = await bytesOf(answer);
  const document = documentOf(bytes);
  if ((statusCodes as Record<string, unknown>)[answer.statusCode] === true) return document;
  throw refusal(answer.statusCode, document);
}

export async function bytesOf(answer: AsyncIterable<Buffer>): Promise<Buffer> {
  const store = new ByteStore();
  const most = Math.min(engineAnswers.bytes.answer, longestDocument());
  for await (const chunk of answer) {
    // Leaving the loop closes the connection of the answer.
    if (store.size + chunk.length > most) throw tooLarge();
    store.add(chunk);
  }
  return store.take();
}

/**
 * Returns a body that is not JSON as its bytes, as docker-modem does; the same for an empty body and `null`.
 */
export function documentOf(bytes: Buffer): unknown {
  try {
    return parseForeignJson(bytes.toString()) || bytes;
  } catch (error) {
    if (error instanceof SyntaxError) return bytes;
    throw error instanceof DocumentTooHeavy ? tooLarge(error) : error;
  }
}

/** The same shape as docker-modem's errors, so that callers can treat both alike. */
export function refusal(statusCode: number, document: unknown): Error {
  const { message } = document as { message?: unknown };
  const words = typeof message === 'string' ? message : String(document);
  return Object.assign(new Error(`(HTTP code ${statusCode}) ${words}`), { statusCode, json: document });
}

function tooLarge(cause?: unknown): OffsiteError {
  return new OffsiteError(
    "An answer of the engine is too large to be read; a sandbox's files or processes can make it so.",
    {
      code: 'ENGINE_ANSWER_TOO_LARGE',
      kind: 'infrastructure',
      cause,
    },
  );
}
