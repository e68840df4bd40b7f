import type { IncomingMessage } from 'node:http';
import { ByteStore } from '../../base/byte-store.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { DocumentTooHeavy, longestDocument, parseForeignJson } from '../../base/parse-json.ts';
import { engineAnswers } from '../../bounds/sandbox.ts';

/**
 * The bytes of an answer that is one document. They are bounded, because a sandbox may choose the content:
 * the paths that it changed, the command lines of its processes.
 */
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

/** A body that is not JSON, empty or `null` is returned as its bytes. */
export function documentOf(bytes: Buffer): unknown {
  try {
    return parseForeignJson(bytes.toString()) || bytes;
  } catch (error) {
    if (error instanceof SyntaxError) return bytes;
    throw error instanceof DocumentTooHeavy ? tooLarge(error) : error;
  }
}

/** The error of an answer that is none of success. It has the answer's status and document. */
export async function refused(answer: IncomingMessage): Promise<Error> {
  const { statusCode } = answer;
  const document = documentOf(await bytesOf(answer));
  const { message } = document as { message?: unknown };
  const words = typeof message === 'string' ? message : String(document);
  return Object.assign(new Error(words), { statusCode, json: document });
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
