import { DocumentTooDeep, DocumentTooHeavy, parseForeignJson, TooManyValues } from '../../base/parse-json.ts';
import { serviceRequests } from '../../bounds/callers.ts';
import { cut } from '../../text/printable.ts';
import { refuse, refusePart } from '../json-response.ts';
import type { Steps } from '../operations/call.ts';

/**
 * The request's body. Refuses a body that is not uncompressed UTF-8 JSON (415), or has more than `limit`
 * bytes (413; before reading it, if the sender announces the length). With `isOptional`, a body of no bytes
 * needs no type. `hold` is told the bytes of the body, as far as they are known.
 */
export async function readBody(
  request: ServiceRequest,
  { limit, isOptional, hold }: { limit: number; isOptional: boolean; hold: (bytes: number) => void },
): Promise<Uint8Array> {
  const { headers } = request;
  const type = headers.get('content-type');
  const announced = headers.get('content-length');
  if (isOptional && type === null) {
    const isEmpty = announced === null ? await isWithoutBytes(request) : Number(announced) === 0;
    if (isEmpty) return new Uint8Array();
  }
  checkContentType(type);
  const encoding = headers.get('content-encoding');
  if (encoding && encoding.toLowerCase() !== 'identity') {
    throw refuse(
      415,
      `Content-Encoding ${JSON.stringify(encoding)} is not supported; send the body as it is.`,
    );
  }
  if (announced !== null) {
    if (Number(announced) > limit) throw tooLarge('body', limit);
    hold(Number(announced));
    const bytes = await request.arrayBuffer().catch(() => Promise.reject(endedEarly('body')));
    if (bytes.byteLength > limit) throw tooLarge('body', limit);
    return new Uint8Array(bytes);
  }
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of bodyPieces(request, limit)) {
    size += piece.byteLength;
    hold(size);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** Reads a body of unknown length up to its first byte. */
async function isWithoutBytes(request: ServiceRequest): Promise<boolean> {
  for await (const piece of arriving(request, 'body')) if (piece.byteLength > 0) return false;
  return true;
}

function checkContentType(header: string | null): void {
  const [type, ...parameters] = (header ?? '').split(';').map((part) => part.trim().toLowerCase());
  const isUtf8 = parameters.every(
    (parameter) => !parameter.startsWith('charset=') || /^charset="?utf-?8"?$/.test(parameter),
  );
  if (type === 'application/json' && isUtf8) return;
  throw refuse(415, 'The body must have Content-Type: application/json (UTF-8).');
}

/**
 * The body of a request, piece by piece. Refuses one of more than `most` bytes (413; before reading it, if
 * the sender announces the length), and one that ends early (400).
 */
export async function* bodyPieces(
  request: ServiceRequest,
  most: number,
  named = 'body',
): AsyncGenerator<Uint8Array> {
  const announced = Number(request.headers.get('content-length'));
  if (announced > most) throw tooLarge(named, most);
  let size = 0;
  for await (const piece of arriving(request, named)) {
    size += piece.byteLength;
    if (size > most) throw tooLarge(named, most);
    yield piece;
  }
  if (size < announced) throw endedEarly(named);
}

async function* arriving(request: ServiceRequest, named: string): AsyncGenerator<Uint8Array> {
  // The listener begins to read the socket when it is asked for this stream. If the rest is then not wanted,
  // it closes the connection. So this is the only place that asks, and only when the bytes are wanted.
  const { body } = request;
  if (!body) return;
  try {
    // Who answers before the end does not cut the connection: the sender is to get the answer.
    yield* body.values({ preventCancel: true });
  } catch {
    throw endedEarly(named);
  }
}

function tooLarge(named: string, most: number) {
  // Closing the connection stops a sender that is still writing.
  return refuse(413, `The ${named} has more than ${most} bytes.`, { connection: 'close' });
}

export function endedEarly(named: string) {
  return refusePart(`the ${named} ended before its announced length`);
}

/**
 * Parses a body, with places at which others may be served. Refuses (413) a body that would take too much
 * memory, and (400) one that is not UTF-8, is nested too deep for the code that reads it, or has so many
 * values that others would wait for it. Also refuses (400) what JSON text can express but Offsite cannot keep
 * unchanged: `__proto__` as a name, and numbers beyond a double's range.
 */
export function* parseJson(bytes: Uint8Array): Steps<unknown> {
  const text = textOf(bytes);
  yield;
  let value: unknown;
  try {
    value = parseForeignJson(text, {
      values: serviceRequests.count.values,
      names: serviceRequests.count.names,
      number: serviceRequests.bytes.number,
    });
  } catch (error) {
    if (error instanceof TooManyValues) {
      const path = error.member === undefined ? [] : [cut(error.member, serviceRequests.bytes.name)];
      throw refusePart(error.message, 'Refinement', path);
    }
    if (error instanceof DocumentTooDeep) throw refusePart(error.message, 'Refinement');
    if (error instanceof DocumentTooHeavy) throw refuse(413, error.message);
    if (!(error instanceof SyntaxError)) throw error;
    throw refusePart('the body is not JSON');
  }
  yield;
  inspect(value, []);
  return value;
}

function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw refusePart('the body is not UTF-8');
  }
}

type Path = (string | number)[];

function inspect(value: unknown, path: Path): void {
  if (typeof value === 'number' && !Number.isFinite(value))
    throw refusePart('the number is too large', 'Refinement', path);
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Array.isArray(value) ? value.entries() : Object.entries(value)) {
    path.push(key);
    if (key === '__proto__') throw refusePart('a field must not be named __proto__', 'Unexpected', path);
    inspect(inner, path);
    path.pop();
  }
}

/** What the service reads of a request: a `Request`, or what a client in this process sends. */
export interface ServiceRequest extends Pick<Request, 'method' | 'url' | 'signal' | 'body' | 'arrayBuffer'> {
  headers: Pick<Headers, 'get'>;
}

export interface ServiceAnswer {
  status: number;
  headers: Record<string, string>;
  body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;
}
