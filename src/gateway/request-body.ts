import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { ByteStore } from '../base/byte-store.ts';
import { DocumentTooDeep, DocumentTooHeavy, heaviestDocument, weighedJson } from '../base/parse-json.ts';
import { modelRequests } from '../bounds/sandbox.ts';
import type { Wire } from '../suite/model-config.ts';
import { type Member, memberNames, membersOf } from './members.ts';
import { clientGone, GatewayRefusal, type Hold } from './room.ts';
import { isObject, type JsonObject, member } from './wires/lenient.ts';
import type { PathTarget } from './wires/wire-descriptor.ts';
import { wireTable } from './wires/wire-table.ts';

/**
 * Reads a request's body, no faster than `hold` has room for it. Throws a {@link GatewayRefusal}: 413 if it
 * is too large, 503 if there is no room. Rejects if the client disconnects.
 */
export async function readBody(request: IncomingMessage, hold: Hold, signal: AbortSignal): Promise<Buffer> {
  // A larger body does not fit into a string, whatever it contains.
  const largest = Math.min(modelRequests.bytes.body, Math.floor(heaviestDocument() / 4));
  const declared = Number(request.headers['content-length'] ?? 0);
  const makeRoom = (bytes: number) => {
    if (bytes > largest) throw tooLarge(largest);
    return hold.resize(bytes, signal);
  };
  // Reserve all room at once if the size is known, so that two requests never wait for each other with half
  // of what they need.
  await makeRoom(declared);
  const store = new ByteStore(declared);
  await eachChunk(request, (chunk) => {
    const room = makeRoom(Math.max(declared, store.size + chunk.length));
    if (!room) return void store.add(chunk);
    return room.then(() => store.add(chunk));
  });
  return store.take();
}

/**
 * Reads a request to its end, and waits for what `take` returns. The request's own iterator is slower.
 * Rejects as `take` does, and does not destroy the request then: that would close its connection, on which a
 * refusal is answered.
 */
function eachChunk(
  request: IncomingMessage,
  take: (chunk: Buffer) => Promise<void> | undefined,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const listen = (chunk: Buffer) => {
    try {
      const taken = take(chunk);
      if (!taken) return;
      request.pause();
      taken.then(() => request.resume(), stop);
    } catch (error) {
      stop(error);
    }
  };
  const stop = (error: unknown) => {
    request.off('data', listen);
    reject(error);
  };
  const gone = () => {
    if (!request.readableEnded) stop(clientGone());
  };
  if (request.destroyed) gone();
  request.on('data', listen).once('end', resolve).once('error', stop).once('close', gone);
  return promise;
}

function tooLarge(largest: number): GatewayRefusal {
  return new GatewayRefusal(413, 'REQUEST_TOO_LARGE', `the body is larger than ${largest} bytes`);
}

/** A request to a model, after it was read. */
export interface ModelRequestBody {
  /** The body as it was received. */
  bytes: Buffer;
  json: JsonObject;
  /** The model's name in the request. */
  model: string;
  streamed: boolean;
  members: readonly Member[];
  /** The most bytes of heap that it needs once parsed. */
  weight: number;
}

/**
 * Reads a request's body. Throws a {@link GatewayRefusal} if it is not a JSON object with a model in UTF-8,
 * or if the upstream might read it differently than this gateway. `inPath`: what the path says.
 */
export function readRequestBody(
  bytes: Buffer,
  wire: Wire,
  inPath?: Pick<PathTarget, 'model' | 'streamed'>,
): ModelRequestBody {
  // Some readers replace invalid bytes, and others decode overlong ones.
  if (!isUtf8(bytes)) throw new GatewayRefusal(400, 'BODY_NOT_JSON', 'the body is not UTF-8');
  const members = membersOf(bytes, memberNames(wire));
  const { json, weight } = parse(bytes);
  if (inPath) return { bytes, json, members, weight, model: inPath.model, streamed: inPath.streamed };
  const { model } = json;
  if (typeof model !== 'string' || model === '') throw invalid('the body has no "model"');
  for (const name of ['stream', 'background']) {
    if (json[name] != null && typeof json[name] !== 'boolean')
      throw invalid(`"${name}" is neither true nor false`);
  }
  if (json.background === true) {
    throw new GatewayRefusal(400, 'BACKGROUND_NOT_ALLOWED', 'a background response cannot be metered');
  }
  return { bytes, json, model, streamed: json.stream === true, members, weight };
}

/**
 * The bytes for the upstream: those of the client, with two exceptions. The model's name is replaced if the
 * upstream uses another one. The wire's option that asks a stream for its usage is always set.
 */
export function bytesForUpstream(body: ModelRequestBody, wire: Wire, upstreamName: string): Buffer {
  const changes: { start: number; end: number; text: string }[] = [];
  const named = body.members.find(({ name }) => name === 'model');
  if (named && body.model !== upstreamName) changes.push({ ...named, text: JSON.stringify(upstreamName) });
  const { usageOption } = wireTable[wire].requests;
  if (usageOption && body.streamed) changes.push(...usageAsked(body, usageOption));
  const parts: Buffer[] = [];
  let from = 0;
  for (const { start, end, text } of changes.toSorted((a, b) => a.start - b.start)) {
    parts.push(body.bytes.subarray(from, start), Buffer.from(text));
    from = end;
  }
  return changes.length === 0 ? body.bytes : Buffer.concat([...parts, body.bytes.subarray(from)]);
}

function usageAsked({ bytes, json, members }: ModelRequestBody, usage: { member: string; option: string }) {
  const options = members.find(({ name }) => name === usage.member);
  const asked = `"${usage.option}":true`;
  if (!options) {
    // There is at least one member, the model.
    const start = bytes.indexOf('{') + 1;
    return [{ start, end: start, text: `"${usage.member}":{${asked}},` }];
  }
  const value = json[usage.member];
  if (!isObject(value)) return [{ ...options, text: `{${asked}}` }];
  if (member(value, usage.option) === true) return [];
  return [{ ...options, text: JSON.stringify({ ...value, [usage.option]: true }) }];
}

function parse(bytes: Buffer): { json: JsonObject; weight: number } {
  let json: unknown;
  let weight: number;
  try {
    ({ json, weight } = weighedJson(bytes.toString('utf8')));
  } catch (cause) {
    if (cause instanceof DocumentTooDeep) throw invalid(cause.message);
    if (cause instanceof DocumentTooHeavy)
      throw new GatewayRefusal(413, 'REQUEST_TOO_LARGE', cause.message, { cause });
    throw new GatewayRefusal(400, 'BODY_NOT_JSON', 'the body is not JSON', { cause });
  }
  if (!isObject(json)) throw invalid('the body is not a JSON object');
  return { json, weight };
}

function invalid(message: string): GatewayRefusal {
  return new GatewayRefusal(400, 'BODY_INVALID', message);
}
