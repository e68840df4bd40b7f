import { OffsiteError } from '../base/offsite-error.ts';
import { type DecodeErrorBody, type Issue, printPath, type restoredTag } from '../contract/errors.ts';

/** Text, its bytes in UTF-8, or a place at which others may be served before the next piece is made. */
export type Piece = string | Uint8Array | undefined;

/**
 * An answer of up to `joinedAtMost` bytes is built before it is sent. A longer one is sent while it is built,
 * in chunks of at least `chunkAtLeast` bytes.
 */
const joinedAtMost = 1024 * 1024;
const chunkAtLeast = 64 * 1024;

/** The sizes of pieces. A slow reader keeps one piece in memory. */
export const pieceSizes = {
  /** Characters of a text that is made while it is sent. */
  text: 64 * 1024,
  /** Bytes of a stored record. SQLite reads the whole record for each slice, so smaller ones take longer. */
  record: 4 * 1024 * 1024,
} as const;

/**
 * The body of an answer that is given as pieces of one JSON text. A piece is taken once its reader wants it,
 * and `pause` is waited for between two chunks and where the pieces have a place for it. If the reader goes
 * away, the pieces end.
 *
 * @param streams is called for an answer that is sent while it is built; may refuse it
 */
export async function bodyOf(
  pieces: Iterable<Piece>,
  pause: () => Promise<void>,
  streams: () => void = () => undefined,
): Promise<Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>> {
  const iterator = Iterator.from(pieces);
  const chunks = chunksOf(iterator, pause);
  let next: ReturnType<typeof chunks.next> | undefined = chunks.next();
  const { value: first } = await next;
  if (first && first.length <= joinedAtMost) return first;
  try {
    streams();
  } catch (error) {
    iterator.return?.();
    throw error;
  }
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await (next ?? chunks.next());
        next = undefined;
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel() {
        // Not the chunks: they may be waiting for their turn, and what the pieces hold is free at once.
        iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}

/** The first chunk has at most `joinedAtMost` bytes only if it is the last one, too. */
async function* chunksOf(
  pieces: Iterable<Piece>,
  pause: () => Promise<void>,
): AsyncGenerator<Uint8Array<ArrayBuffer>, undefined> {
  let taken: Uint8Array[] = [];
  let size = 0;
  let most = joinedAtMost;
  for (const piece of pieces) {
    if (piece !== undefined) {
      const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece;
      taken.push(bytes);
      size += bytes.length;
      if (size <= most) continue;
      yield Buffer.concat(taken);
      [taken, size, most] = [[], 0, chunkAtLeast];
    }
    await pause();
  }
  yield Buffer.concat(taken);
  return undefined;
}

/**
 * For statuses that the specification does not list, the bodies have the same form, with Offsite's own tags.
 */
const tags = {
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  409: 'Conflict',
  413: 'PayloadTooLarge',
  415: 'UnsupportedMediaType',
  429: 'TooManyRequests',
} as const;

type ErrorStatus = 400 | keyof typeof tags;
type Tag = (typeof tags)[keyof typeof tags] | typeof restoredTag;
type ErrorBody = DecodeErrorBody | { _tag: Tag; message: string };

/** A request gets an error status because of what it asks for, not because the service failed. */
export class ApiError extends OffsiteError {
  override readonly name = 'ApiError';
  readonly status: ErrorStatus;
  readonly body: ErrorBody;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: ErrorStatus, body: ErrorBody, headers: Record<string, string> = {}) {
    super(body.message, { code: `SERVICE_REFUSED_${status}`, kind: 'input' });
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

export function refuse(
  status: keyof typeof tags,
  message: string,
  headers: Record<string, string> = {},
  _tag: Tag = tags[status],
): ApiError {
  return new ApiError(status, { _tag, message }, headers);
}

/** A 400 with one issue: by default, that the whole body is not what it must be. */
export function refusePart(
  message: string,
  _tag: Issue['_tag'] = 'Type',
  path: Issue['path'] = [],
): ApiError {
  return refuseBody([{ _tag, path, message }]);
}

/** A 400. The message names the first few issues, for people; programs read `issues`. */
export function refuseBody(issues: Issue[]): ApiError {
  const named = issues
    .slice(0, 3)
    .map(({ path, message }) => (path.length ? `${printPath(path)}: ${message}` : message));
  const rest = issues.length > named.length ? `; and ${issues.length - named.length} more` : '';
  return new ApiError(400, { _tag: 'HttpApiDecodeError', message: named.join('; ') + rest, issues });
}
