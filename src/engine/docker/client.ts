import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Duplex, Readable } from 'node:stream';
import { inspect } from 'node:util';
import type Docker from 'dockerode';
import type { Clock } from '../../base/clock.ts';
import { startDeadline } from '../../base/deadline.ts';
import type { EngineAddress } from '../connection/address.ts';
import { Ending } from '../connection/ending.ts';
import { boundedDial } from './bounded-answer.ts';
import { engineMessage, engineStatus, type KindOf, requestFailure } from './failure.ts';

/** Even quick requests get this much time: a busy engine on a slow disk needs it. */
const requestTimeoutMs = 120_000;
/** How long a request waits for a container that is paused, and between two tries. */
const pausedMs = 10_000;
const pausedPollMs = 20;

export interface CallOptions {
  signal?: AbortSignal | undefined;
  /** Milliseconds after which the request counts as lost. */
  timeoutMs?: number;
}

/** One connection to one engine: dockerode, counted, with a deadline on every request. */
export interface DockerClient {
  readonly docker: Docker;
  readonly address: EngineAddress;
  /** Holds its connections. */
  readonly agent: HttpAgent;
  readonly clock: Clock;
  /** The API version, such as `1.41`; empty for the engine's default. */
  readonly apiVersion: string;
  /** Requests sent so far. One round trip is the unit of cost of everything here. */
  readonly roundTrips: number;
  /**
   * Makes one request. `doing` continues "while" in the error text; `request` must pass the signal on
   * as dockerode's `abortSignal`. Throws the caller's abort reason, or an `OffsiteError`.
   */
  call<T>(
    doing: string,
    request: (abortSignal: AbortSignal) => Promise<T>,
    options?: CallOptions,
  ): Promise<T>;
  /**
   * Sends a request for which dockerode has no method, or whose answer that method drops. Throws as `call`
   * does.
   */
  ask<T>(doing: string, request: DialRequest, options?: CallOptions): Promise<T>;
  /** The same, but returns the answer's body as a stream. */
  askForStream(doing: string, request: DialRequest, options?: CallOptions): Promise<Readable>;
  /** The same as `ask`, but sends an archive as the request's body. */
  upload<T>(doing: string, request: Upload, options?: CallOptions): Promise<T>;
  /** Call this when the Offsite process starts to end: from then on, a silent engine soon counts as gone. */
  beginEnding(): void;
  /** Closes idle connections. */
  close(): void;
}

export interface DialRequest {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** With its query string, if any. */
  path: string;
  body?: unknown;
  /** The statuses that mean success; default: 200. */
  expected?: number[];
}

export interface Upload extends Omit<DialRequest, 'body'> {
  archive: Readable;
}

/** Does not connect yet: dockerode connects with the first request. `apiVersion` looks like `1.41`. */
export async function openClient(
  address: EngineAddress,
  clock: Clock,
  apiVersion?: string,
  kindOf?: KindOf,
): Promise<DockerClient> {
  // Loaded late: half of the CLI's commands never talk to an engine.
  const { default: Dockerode } = await import('dockerode');
  const agent =
    address.kind === 'https'
      ? new HttpsAgent({ keepAlive: true, ...address.tls })
      : new HttpAgent({ keepAlive: true });
  // docker-modem inspects its options for a debug line at every request, printed or not. Inspecting the agent
  // with all its sockets took 15 ms per request with eight trials in flight.
  Object.defineProperty(agent, inspect.custom, { value: () => 'agent' });
  const options: Docker.DockerOptions & { agent: HttpAgent } = {
    ...clientOptions(address),
    agent,
    // If left out, docker-modem reads it from DOCKER_CLIENT_TIMEOUT, which would cut idle waits.
    timeout: undefined,
    ...(apiVersion === undefined ? {} : { version: `v${apiVersion}` }),
  };
  const docker = new Dockerode(options);
  const close = trackSockets(agent);
  return wrapClient(docker, { address, agent, clock, apiVersion: apiVersion ?? '', kindOf, close });
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

function clientOptions(address: EngineAddress): Docker.DockerOptions {
  switch (address.kind) {
    case 'socket':
      // `host` must be present: otherwise DOCKER_HOST wins over the socket path.
      return { socketPath: address.path, host: undefined, port: undefined, protocol: 'http' };
    case 'http':
      return { host: address.host, port: address.port, protocol: 'http' };
    case 'https':
      // Present even if undefined: dockerode reads missing ones from DOCKER_CERT_PATH.
      return {
        host: address.host,
        port: address.port,
        protocol: 'https',
        ca: address.tls.ca,
        cert: address.tls.cert,
        key: address.tls.key,
      };
  }
}

interface Wrapping extends Pick<DockerClient, 'address' | 'agent' | 'clock' | 'apiVersion' | 'close'> {
  kindOf: KindOf | undefined;
}

function wrapClient(docker: Docker, { kindOf, ...wrapping }: Wrapping): DockerClient {
  const { clock } = wrapping;
  let roundTrips = 0;
  const dial = boundedDial(docker.modem.dial.bind(docker.modem));
  docker.modem.dial = (options, callback) => {
    roundTrips += 1;
    dial(options, callback);
  };
  const ending = new Ending(clock);
  const call: DockerClient['call'] = async (doing, request, options = {}) => {
    const { signal, timeoutMs = requestTimeoutMs } = options;
    signal?.throwIfAborted();
    if (ending.gone.aborted) throw requestFailure(doing, ending.gone.reason);
    using deadline = startDeadline(clock, timeoutMs, [signal, ending.gone]);
    using _waiting = ending.request();
    try {
      const answer = await unpaused(() => request(deadline.signal), clock, deadline.signal);
      ending.answered();
      return answer;
    } catch (thrown) {
      if (engineStatus(thrown) !== undefined) ending.answered();
      if (signal?.aborted) throw signal.reason;
      throw requestFailure(doing, deadline.signal.aborted ? deadline.signal.reason : thrown, kindOf);
    }
  };
  return {
    ...wrapping,
    docker,
    get roundTrips() {
      return roundTrips;
    },
    call,
    ask: <T>(doing: string, request: DialRequest, options?: CallOptions) =>
      call(doing, (abortSignal) => dialed(docker, request, { abortSignal }) as Promise<T>, options),
    askForStream: (doing, request, options) =>
      call(
        doing,
        (abortSignal) => dialed(docker, request, { abortSignal, isStream: true }) as Promise<Readable>,
        options,
      ),
    upload: <T>(doing: string, { archive, ...request }: Upload, options?: CallOptions) =>
      call(
        doing,
        (abortSignal) => dialed(docker, request, { abortSignal, file: archive }) as Promise<T>,
        options,
      ),
    beginEnding: () => ending.begin(),
    close() {
      ending[Symbol.dispose]();
      wrapping.close();
    },
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

function dialed(
  docker: Docker,
  { method, path, body = {}, expected = [200] }: DialRequest,
  more: { abortSignal: AbortSignal; isStream?: true; file?: Readable },
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    docker.modem.dial(
      {
        path,
        method,
        statusCodes: Object.fromEntries(expected.map((status) => [status, true])),
        options: { _query: {}, _body: body },
        ...more,
      },
      (error, answer) => (error ? reject(error) : resolve(answer)),
    );
  });
}
