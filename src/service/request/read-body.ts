import { DocumentTooDeep, DocumentTooHeavy, parseForeignJson, TooManyValues } from '../../base/parse-json.ts';
import { serviceRequests } from '../../bounds/callers.ts';
import type { Issue } from '../../contract/errors.ts';
import { cut } from '../../text/printable.ts';
import { refuse, refuseBody } from '../json-response.ts';
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
  const type = request.headers.get('content-type');
  if (isOptional && type === null && (await isEmpty(request))) return new Uint8Array();
  checkContentType(type);
  const encoding = request.headers.get('content-encoding');
  if (encoding && encoding.toLowerCase() !== 'identity') {
    throw refuse(
      415,
      `Content-Encoding ${JSON.stringify(encoding)} is not supported; send the body as it is.`,
    );
  }
  const announced = request.headers.get('content-length');
  if (announced !== null && Number(announced) > limit) throw tooLarge(limit);
  if (announced !== null) hold(Number(announced));
  const bytes = announced === null ? await readStream(request, limit, hold) : await readWhole(request);
  if (bytes.byteLength > limit) throw tooLarge(limit);
  return bytes;
}

/** Reads a body of unknown length up to its first byte. */
async function isEmpty({ headers, body }: ServiceRequest): Promise<boolean> {
  const announced = headers.get('content-length');
  if (announced !== null || !body) return Number(announced) === 0;
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read().catch(() => {
      throw endedEarly();
    });
    if (done) return true;
    if (value.byteLength > 0) return false;
  }
}

function checkContentType(header: string | null): void {
  const [type, ...parameters] = (header ?? '').split(';').map((part) => part.trim().toLowerCase());
  const isUtf8 = parameters.every(
    (parameter) => !parameter.startsWith('charset=') || /^charset="?utf-?8"?$/.test(parameter),
  );
  if (type === 'application/json' && isUtf8) return;
  throw refuse(415, 'The body must have Content-Type: application/json (UTF-8).');
}

async function readWhole(request: ServiceRequest): Promise<Uint8Array> {
  try {
    return new Uint8Array(await request.arrayBuffer());
  } catch {
    throw endedEarly();
  }
}

/** Reads a body of unknown length, up to the limit. */
async function readStream(
  request: ServiceRequest,
  limit: number,
  hold: (bytes: number) => void,
): Promise<Uint8Array> {
  if (!request.body) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  const reader = request.body.getReader();
  for (let size = 0; ; ) {
    const { done, value } = await reader.read().catch(() => {
      throw endedEarly();
    });
    if (done) return Buffer.concat(chunks);
    size += value.byteLength;
    if (size > limit) throw tooLarge(limit);
    hold(size);
    chunks.push(value);
  }
}

function tooLarge(limit: number) {
  // Closing the connection stops a sender that is still writing.
  return refuse(413, `The body has more than ${limit} bytes.`, { connection: 'close' });
}

function endedEarly() {
  return refuseBody([{ _tag: 'Type', path: [], message: 'the body ended before its announced length' }]);
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
      throw refuseBody([{ _tag: 'Refinement', path, message: error.message }]);
    }
    if (error instanceof DocumentTooDeep) {
      throw refuseBody([{ _tag: 'Refinement', path: [], message: error.message }]);
    }
    if (error instanceof DocumentTooHeavy) throw refuse(413, error.message);
    if (!(error instanceof SyntaxError)) throw error;
    throw refuseBody([{ _tag: 'Type', path: [], message: 'the body is not JSON' }]);
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
    throw refuseBody([{ _tag: 'Type', path: [], message: 'the body is not UTF-8' }]);
  }
}

type Path = (string | number)[];

function inspect(value: unknown, path: Path): void {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw refusal(path, 'Refinement', 'the number is too large');
  }
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) step(index, value[index], path);
    return;
  }
  for (const name of Object.keys(value)) {
    if (name === '__proto__')
      throw refusal([...path, name], 'Unexpected', 'a field must not be named __proto__');
    step(name, (value as Record<string, unknown>)[name], path);
  }
}

function step(key: string | number, value: unknown, path: Path): void {
  path.push(key);
  inspect(value, path);
  path.pop();
}

function refusal(path: Path, _tag: Issue['_tag'], message: string) {
  return refuseBody([{ _tag, path, message }]);
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
