import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Readable } from 'node:stream';
import { inspect } from 'node:util';
import type Docker from 'dockerode';
import type { Clock } from '../../clock.ts';
import type { EngineAddress } from '../connection/address.ts';
import { startDeadline } from '../deadline.ts';
import { boundedDial } from './bounded-answer.ts';
import { requestFailure } from './failure.ts';

/** Engine requests that answer at once still get this long: a busy engine on a slow disk needs it. */
const REQUEST_TIMEOUT_MS = 120_000;

export interface CallOptions {
  signal?: AbortSignal | undefined;
  /** Milliseconds until the request counts as lost. */
  timeoutMs?: number;
}

/** One connection to one engine: dockerode, counted, with a deadline on every request. */
export interface DockerClient {
  readonly docker: Docker;
  readonly clock: Clock;
  /** What it speaks, such as `1.41`; empty for whatever the engine speaks. */
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
   * One request that dockerode has no method for, or whose answer its method drops. Throws as `call` does.
   */
  ask<T>(doing: string, request: DialRequest, options?: CallOptions): Promise<T>;
  /** The same, with the answer's body as it comes. */
  askForStream(doing: string, request: DialRequest, options?: CallOptions): Promise<Readable>;
  /** Closes idle connections. */
  close(): void;
}

export interface DialRequest {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** With its query string, if any. */
  path: string;
  body?: unknown;
  /** The statuses that are no failure; 200 when left out. */
  expected?: number[];
}

/** Opens no connection yet: dockerode connects with the first request. `apiVersion` looks like `1.41`. */
export async function openClient(
  address: EngineAddress,
  clock: Clock,
  apiVersion?: string,
): Promise<DockerClient> {
  // Loaded late: half of the CLI's commands never talk to an engine.
  const { default: Dockerode } = await import('dockerode');
  const agent =
    address.kind === 'https'
      ? new HttpsAgent({ keepAlive: true, ...address.tls })
      : new HttpAgent({ keepAlive: true });
  // docker-modem inspects its options for a debug line at every request, printed or not. The agent with all
  // its sockets took 15 ms a request with eight trials at work.
  Object.defineProperty(agent, inspect.custom, { value: () => 'agent' });
  const options: Docker.DockerOptions & { agent: HttpAgent } = {
    ...clientOptions(address),
    agent,
    // An unset one would be read from DOCKER_CLIENT_TIMEOUT, and would cut idle waits.
    timeout: undefined,
    ...(apiVersion === undefined ? {} : { version: `v${apiVersion}` }),
  };
  const docker = new Dockerode(options);
  return wrapClient(docker, clock, apiVersion ?? '', () => agent.destroy());
}

function clientOptions(address: EngineAddress): Docker.DockerOptions {
  switch (address.kind) {
    case 'socket':
      // DOCKER_HOST would win over the socket path, were `host` not there to overrule it.
      return { socketPath: address.path, host: undefined, port: undefined, protocol: 'http' };
    case 'http':
      return { host: address.host, port: address.port, protocol: 'http' };
    case 'https':
      // Named even where undefined: what is left out dockerode would take from DOCKER_CERT_PATH.
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

function wrapClient(docker: Docker, clock: Clock, apiVersion: string, close: () => void): DockerClient {
  let roundTrips = 0;
  const dial = boundedDial(docker.modem.dial.bind(docker.modem));
  docker.modem.dial = (options, callback) => {
    roundTrips += 1;
    dial(options, callback);
  };
  const call: DockerClient['call'] = async (doing, request, options = {}) => {
    options.signal?.throwIfAborted();
    using deadline = startDeadline(clock, options.timeoutMs ?? REQUEST_TIMEOUT_MS, options.signal);
    try {
      return await request(deadline.signal);
    } catch (thrown) {
      if (options.signal?.aborted) throw options.signal.reason;
      throw requestFailure(doing, deadline.signal.aborted ? deadline.signal.reason : thrown);
    }
  };
  return {
    docker,
    clock,
    apiVersion,
    get roundTrips() {
      return roundTrips;
    },
    call,
    ask: <T>(doing: string, request: DialRequest, options?: CallOptions) =>
      call(doing, (abortSignal) => dialed(docker, request, abortSignal, false) as Promise<T>, options),
    askForStream: (doing, request, options) =>
      call(doing, (abortSignal) => dialed(docker, request, abortSignal, true) as Promise<Readable>, options),
    close,
  };
}

function dialed(
  docker: Docker,
  { method, path, body = {}, expected = [200] }: DialRequest,
  abortSignal: AbortSignal,
  isStream: boolean,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    docker.modem.dial(
      {
        path,
        method,
        statusCodes: Object.fromEntries(expected.map((status) => [status, true])),
        options: { _query: {}, _body: body },
        abortSignal,
        ...(isStream && { isStream }),
      },
      (error, answer) => (error ? reject(error) : resolve(answer)),
    );
  });
}
