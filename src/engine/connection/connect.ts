import type { Clock } from '../../base/clock.ts';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { openClient } from '../docker/client.ts';
import { introduce } from '../docker/negotiate.ts';
import { openDocker } from '../docker/open.ts';
import { openPodman } from '../podman/open.ts';
import type { EnginePort, OpenEngine } from '../port/engine-port.ts';
import { isEngineFailure } from '../port/failure.ts';
import type { EngineAddress, EngineCandidate } from './address.ts';
import { candidates } from './candidates.ts';
import { reach } from './reach.ts';
import { SshFailure } from './ssh-failure.ts';
import { EngineUnreachable, type TriedEngine } from './unreachable.ts';

export interface Connection {
  port: EnginePort;
  /** For messages: `unix:///var/run/docker.sock (the default socket)`. */
  address: string;
  /** The same address for the docker CLI. Undefined if the CLI would need more than the address. */
  cliHost: string | undefined;
  /** Call this when the Offsite process starts to end: from then on, a silent engine soon counts as gone. */
  beginEnding(): void;
  close(): Promise<void>;
}

export interface ConnectRequest {
  host: string | undefined;
  /** The folder of the certificates for `host`. */
  certificates?: string | undefined;
  env: NodeJS.ProcessEnv;
  clock: Clock;
  signal: AbortSignal | undefined;
}

/**
 * Connects to the first engine that answers. If the user named one (flag, environment, context), it is the
 * only candidate: a sandbox must not end up on another machine because the intended one is down.
 */
export async function connect(request: ConnectRequest): Promise<Connection> {
  const tried: TriedEngine[] = [];
  let lastFailure: unknown;
  const all = await candidates(request.host, request.env, request.certificates);
  for (const candidate of all) {
    try {
      return await connectTo(candidate, request);
    } catch (failure) {
      if (request.signal?.aborted) throw request.signal.reason;
      // Another candidate does not fix wrong settings or an engine that is too old.
      if (failure instanceof OffsiteError && !isEngineFailure(failure, 'connection')) throw failure;
      tried.push({ host: candidate.host, source: candidate.source, failure: messageOf(failure) });
      lastFailure = failure;
    }
  }
  throw new EngineUnreachable(tried, {
    isNamed: all.some((one) => one.isNamed),
    hint: lastFailure instanceof SshFailure ? lastFailure.hint : undefined,
    cause: lastFailure,
  });
}

async function connectTo(candidate: EngineCandidate, request: ConnectRequest): Promise<Connection> {
  const reached = await reach(candidate, request);
  let opened: OpenEngine;
  try {
    opened = await openEngine(reached.address, request.clock, request.signal);
  } catch (error) {
    const failure = isEngineFailure(error, 'connection') ? await reached.failure() : undefined;
    await reached.close();
    throw failure ?? error;
  }
  return {
    port: opened.port,
    address: `${candidate.host} (${candidate.source})`,
    cliHost: candidate.tls === undefined ? candidate.host : undefined,
    beginEnding: opened.beginEnding,
    async close() {
      opened.close();
      await reached.close();
    },
  };
}

/**
 * Asks the engine at an address whether it is Docker or Podman, and connects to it as that. Throws a
 * `connection` failure, or `ENGINE_TOO_OLD`.
 *
 * To add an engine with Docker's API: its socket in `candidates.ts`, features that it reports in another
 * way in `engine/docker/facts.ts`, answers that differ beside their requests in `engine/docker/`, and
 * other requests by `engine/docker/negotiate.ts`, as for Podman. With another API: its address in
 * `address.ts`, `reach.ts` and `candidates.ts`; its choice here, before Docker's version is asked; its
 * name in `product` of `engine/port/capabilities.ts`; and a folder beside `engine/docker/` that makes an
 * `OpenEngine`, limits each answer, throws the failures of `engine/port/failure.ts` and ends requests
 * with `ending.ts`. It is complete when `offsite doctor --deep` and `npm test -- --engine NAME` pass.
 */
async function openEngine(address: EngineAddress, clock: Clock, signal?: AbortSignal): Promise<OpenEngine> {
  const client = await openClient(address, clock);
  try {
    const { apiVersion, isPodman } = await introduce(client, signal);
    return await (isPodman ? openPodman : openDocker)(address, clock, apiVersion);
  } finally {
    client.close();
  }
}
