import { refuse, refuseBody } from '../api-error.ts';
import type { ServiceRequest } from './service-request.ts';

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
