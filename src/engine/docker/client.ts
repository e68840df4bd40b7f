import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request as overHttp } from 'node:http';
import { Agent as HttpsAgent, request as overTls } from 'node:https';
import { addAbortSignal, type Duplex, Readable } from 'node:stream';
import { ByteStore } from '../../base/byte-store.ts';
import type { Clock } from '../../base/clock.ts';
import { startDeadline } from '../../base/deadline.ts';
import { infrastructureError, type OffsiteError } from '../../base/offsite-error.ts';
import { DocumentTooHeavy, longestDocument, parseForeignJson } from '../../base/parse-json.ts';
import { engineAnswers } from '../../bounds/sandbox.ts';
import type { EngineAddress } from '../connection/docker-context.ts';
import { Ending } from '../connection/ending.ts';
import { engineMessage, engineStatus, type KindOf, requestFailure } from './failure.ts';

/** Even quick requests get this much time: a busy engine on a slow disk needs it. */
const requestTimeoutMs = 120_000;
/** How long a request waits for a container that is paused, and between two tries. */
const pausedMs = 10_000;
const pausedPollMs = 20;

/** A method and a path, with its query string, if any: `POST /containers/create?name=x`. */
export type Route = `${'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE'} /${string}`;

export interface CallOptions {
  /** An archive as a stream, or what is sent as JSON. */
  body?: unknown;
  headers?: Record<string, string>;
  /** A status that means success, besides 200 to 299. */
  expected?: number;
  signal?: AbortSignal | undefined;
  /** Milliseconds after which the request counts as lost. */
  timeoutMs?: number;
}

/** Connections to one engine: its requests are counted, and each has a deadline. */
export interface DockerClient {
  readonly address: EngineAddress;
  readonly clock: Clock;
  /** The API version, such as `1.41`; empty for the engine's default. */
  readonly apiVersion: string;
  /** Requests sent so far. One round trip is the unit of cost of everything here. */
  readonly roundTrips: number;
  /**
   * Makes one request, and resolves with the document that answers it. `doing` continues "while" in the error
   * text. Throws the caller's abort reason, or an `OffsiteError`.
   */
  ask<T>(doing: string, route: Route, options?: CallOptions): Promise<T>;
  /** The same, but returns the answer with its headers, whose body is a stream. */
  askForStream(doing: string, route: Route, options?: CallOptions): Promise<IncomingMessage>;
  /** The same, but returns the connection, which belongs to a program once the engine has upgraded it. */
  hijack(doing: string, route: Route, options?: CallOptions): Promise<Duplex>;
  /** Call this when the Offsite process starts to end: from then on, a silent engine soon counts as gone. */
  beginEnding(): void;
  /** Closes all connections. */
  close(): void;
}

/** Does not connect yet: the first request does. `apiVersion` looks like `1.41`. */
export function openClient(
  address: EngineAddress,
  clock: Clock,
  apiVersion?: string,
  kindOf?: KindOf,
): DockerClient {
  const agent =
    address.kind === 'https'
      ? new HttpsAgent({ keepAlive: true, ...address.tls })
      : new HttpAgent({ keepAlive: true });
  const close = trackSockets(agent);
  const ending = new Ending(clock);
  const sender = { address, agent, prefix: apiVersion === undefined ? '' : `/v${apiVersion}` };
  let roundTrips = 0;
  const call = async <T>(
    doing: string,
    route: Route,
    options: CallOptions = {},
    answered: (sent: ClientRequest, signal: AbortSignal) => Promise<T>,
  ): Promise<T> => {
    const { signal, timeoutMs = requestTimeoutMs } = options;
    signal?.throwIfAborted();
    if (ending.gone.aborted) throw requestFailure(doing, ending.gone.reason);
    using deadline = startDeadline(clock, timeoutMs, [signal, ending.gone]);
    using _waiting = ending.request();
    const request = () => {
      roundTrips += 1;
      return answered(send(sender, route, options, deadline.signal), deadline.signal);
    };
    try {
      const answer = await unpaused(request, clock, deadline.signal);
      ending.answered();
      return answer;
    } catch (thrown) {
      if (engineStatus(thrown) !== undefined) ending.answered();
      if (signal?.aborted) throw signal.reason;
      throw requestFailure(doing, deadline.signal.aborted ? deadline.signal.reason : thrown, kindOf);
    }
  };
  return {
    address,
    clock,
    apiVersion: apiVersion ?? '',
    get roundTrips() {
      return roundTrips;
    },
    ask: <T>(doing: string, route: Route, options?: CallOptions) =>
      call(doing, route, options, async (sent, signal) => {
        const answer = addAbortSignal(signal, await answerTo(sent, options?.expected));
        return documentOf(await bytesOf(answer)) as T;
      }),
    askForStream: (doing, route, options) =>
      call(doing, route, options, (sent) => answerTo(sent, options?.expected)),
    hijack: (doing, route, options) =>
      call(doing, route, { ...options, headers: { Connection: 'Upgrade', Upgrade: 'tcp' } }, upgraded),
    beginEnding: () => ending.begin(),
    close() {
      ending[Symbol.dispose]();
      close();
    },
  };
}

interface Sender {
  address: EngineAddress;
  agent: HttpAgent;
  /** Of every path. */
  prefix: string;
}

/** The answer to a request. Rejects with what {@link refused} makes of a refusal. */
async function answerTo(sent: ClientRequest, expected: number | undefined): Promise<IncomingMessage> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    sent.on('response', resolve);
    sent.on('error', reject);
  });
  const { statusCode = 0 } = answer;
  if ((statusCode >= 200 && statusCode < 300) || statusCode === expected) return answer;
  throw await refused(answer);
}

function upgraded(sent: ClientRequest): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    sent.on('upgrade', (_, socket, head) => {
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    sent.on('response', (answer) => refused(answer).then(reject, reject));
    sent.on('error', reject);
  });
}

function send(
  { address, agent, prefix }: Sender,
  route: Route,
  { body, headers }: CallOptions,
  signal: AbortSignal,
): ClientRequest {
  const space = route.indexOf(' ');
  const isArchive = body instanceof Readable;
  const type = isArchive ? 'application/tar' : 'application/json';
  const options = {
    ...(address.kind === 'socket'
      ? { socketPath: address.path }
      : { host: address.host, port: address.port }),
    ...(address.kind === 'https' && address.tls),
    method: route.slice(0, space),
    path: `${prefix}${route.slice(space + 1)}`,
    agent,
    signal,
    headers: { ...(body !== undefined && { 'Content-Type': type }), ...headers },
  };
  const request = (address.kind === 'https' ? overTls : overHttp)(options);
  if (isArchive) {
    body.on('error', (error) => request.destroy(error));
    body.pipe(request);
  } else request.end(body === undefined ? undefined : JSON.stringify(body));
  return request;
}

/**
 * Returns a function that closes all connections of an HTTP agent. The HTTP agent itself forgets connections
 * that became streams of commands, and an engine that hangs never ends those.
 */
function trackSockets(agent: HttpAgent): () => void {
  const sockets = new Set<Duplex>();
  const create = agent.createConnection.bind(agent);
  agent.createConnection = (...given) => {
    const socket = create(...given);
    if (socket) sockets.add(socket.once('close', () => sockets.delete(socket)));
    return socket;
  };
  return () => {
    agent.destroy();
    for (const socket of sockets) socket.destroy();
  };
}

/**
 * Asks again while the container is paused, as it is for a moment when Offsite measures what it wrote, and if
 * somebody else pauses it. Engines refuse commands then. They take archives, which could not be sent again.
 */
async function unpaused<T>(request: () => Promise<T>, clock: Clock, signal: AbortSignal): Promise<T> {
  const end = clock.now() + pausedMs;
  for (;;) {
    try {
      return await request();
    } catch (thrown) {
      const isPaused = engineStatus(thrown) === 409 && /\bis paused\b/.test(engineMessage(thrown));
      if (!isPaused || clock.now() > end) throw thrown;
      await clock.sleep(pausedPollMs, signal);
    }
  }
}

/**
 * The bytes of an answer that is one document. They are bounded, because a sandbox may choose the content:
 * the paths that it changed, the command lines of its processes.
 */
async function bytesOf(answer: AsyncIterable<Buffer>): Promise<Buffer> {
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
function documentOf(bytes: Buffer): unknown {
  try {
    return parseForeignJson(bytes.toString()) || bytes;
  } catch (error) {
    if (error instanceof SyntaxError) return bytes;
    throw error instanceof DocumentTooHeavy ? tooLarge(error) : error;
  }
}

/** The error of an answer that is none of success. It has the answer's status and document. */
async function refused(answer: IncomingMessage): Promise<Error> {
  const { statusCode } = answer;
  const document = documentOf(await bytesOf(answer));
  const { message } = document as { message?: unknown };
  const words = typeof message === 'string' ? message : String(document);
  return Object.assign(new Error(words), { statusCode, json: document });
}

function tooLarge(cause?: unknown): OffsiteError {
  return infrastructureError(
    'ENGINE_ANSWER_TOO_LARGE',
    "An answer of the engine is too large to be read; a sandbox's files or processes can make it so.",
    { cause },
  );
}
