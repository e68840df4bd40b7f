import type { Clock } from '../../clock.ts';
import { messageOf, OffsiteError } from '../../offsite-error.ts';
import type { EngineAddress, EngineCandidate } from './address.ts';
import { candidates } from './candidates.ts';
import { type EngineClient, openClient } from './engine-client.ts';
import { negotiateVersion } from './negotiate.ts';
import { reach } from './reach.ts';
import { EngineUnreachable, type TriedEngine } from './unreachable.ts';

export interface Connection {
  client: EngineClient;
  /** For messages: `unix:///var/run/docker.sock (the default socket)`. */
  address: string;
  apiVersion: string;
  close(): Promise<void>;
}

export interface ConnectRequest {
  host: string | undefined;
  env: NodeJS.ProcessEnv;
  clock: Clock;
  signal: AbortSignal | undefined;
}

/**
 * Connects to the first engine that answers. Where the user named one (flag, environment, context) it is the only candidate: a
 * sandbox must not end up on another machine because the one that was meant is down.
 */
export async function connect(request: ConnectRequest): Promise<Connection> {
  const tried: TriedEngine[] = [];
  let lastFailure: unknown;
  for (const candidate of await candidates(request.host, request.env)) {
    try {
      return await connectTo(candidate, request);
    } catch (failure) {
      if (request.signal?.aborted) throw request.signal.reason;
      // Settings that cannot work, or an engine that is too old, are not mended by another candidate.
      if (failure instanceof OffsiteError && failure.code !== 'ENGINE_CONNECTION') throw failure;
      tried.push({ host: candidate.host, source: candidate.source, failure: messageOf(failure) });
      lastFailure = failure;
    }
  }
  throw new EngineUnreachable(tried, lastFailure);
}

async function connectTo(candidate: EngineCandidate, request: ConnectRequest): Promise<Connection> {
  const { clock, signal } = request;
  const reached = await reach(candidate, request);
  try {
    const apiVersion = await negotiated(reached.address, clock, signal);
    const client = await openClient(reached.address, clock, apiVersion);
    return {
      client,
      address: `${candidate.host} (${candidate.source})`,
      apiVersion,
      async close() {
        client.close();
        await reached.close();
      },
    };
  } catch (error) {
    await reached.close();
    throw error;
  }
}

async function negotiated(
  address: EngineAddress,
  clock: Clock,
  signal: AbortSignal | undefined,
): Promise<string> {
  const client = await openClient(address, clock);
  try {
    return await negotiateVersion(client, signal);
  } finally {
    client.close();
  }
}
