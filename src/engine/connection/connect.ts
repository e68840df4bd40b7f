import { userInfo } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { infrastructureError, inputError, messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { type DockerClient, openClient } from '../docker/client.ts';
import { openDocker } from '../docker/open.ts';
import { openPodman } from '../podman/open.ts';
import type { EnginePort, OpenEngine } from '../port/engine-port.ts';
import { engineFailure, isEngineFailure } from '../port/failure.ts';
import {
  configFolder,
  contextCandidate,
  currentContext,
  type EngineAddress,
  type EngineCandidate,
  readTlsFolder,
} from './docker-context.ts';
import { forwardOverSsh, type ReachOptions, SshFailure } from './ssh-forward.ts';

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
 * To add an engine with Docker's API: its socket in `candidates`, features that it reports in another
 * way in `engine/docker/facts.ts`, answers that differ beside their requests in `engine/docker/`, and
 * other requests by {@link introduce}, as for Podman. With another API: its address in
 * `docker-context.ts`, `reach` and `candidates`; its choice here, before Docker's version is asked; its
 * name in `product` of `engine/port/engine-port.ts`; and a folder beside `engine/docker/` that makes an
 * `OpenEngine`, limits each answer, throws the failures of `engine/port/failure.ts` and ends requests
 * with `ending.ts`. It is complete when `offsite doctor --deep` and `npm test -- --engine NAME` pass.
 */
async function openEngine(address: EngineAddress, clock: Clock, signal?: AbortSignal): Promise<OpenEngine> {
  const client = openClient(address, clock);
  try {
    const { apiVersion, isPodman } = await introduce(client, signal);
    return await (isPodman ? openPodman : openDocker)(address, clock, apiVersion);
  } finally {
    client.close();
  }
}

/** The newest version that this code supports; engine 29 refuses versions below 1.44. */
const newestVersion = '1.56';
/** Engine 20.10. Older ones do not say which control groups they use. */
const oldestVersion = '1.41';
const pingTimeoutMs = 10_000;

interface Introduction {
  /** The API version to speak. */
  apiVersion: string;
  isPodman: boolean;
}

/**
 * Whose engine it is, and the API version to speak: the newest that both sides know. Engines refuse versions
 * that are too old or too new for them. `/version` works without one.
 */
async function introduce(client: DockerClient, signal?: AbortSignal): Promise<Introduction> {
  const answer = await client.ask<{ ApiVersion?: string; Components?: { Name?: string }[] | null }>(
    'asking the engine for its version',
    'GET /version',
    { signal, timeoutMs: pingTimeoutMs },
  );
  const { ApiVersion: offered } = answer;
  if (typeof offered !== 'string') {
    throw engineFailure(
      'refused',
      'The server at this address is not a Docker engine: it reports no API version.',
      answer,
    );
  }
  if (olderThan(offered, oldestVersion)) {
    throw infrastructureError(
      'ENGINE_TOO_OLD',
      `The engine is too old: it speaks API ${offered}, and ${oldestVersion} is needed.`,
      { hint: 'Update to Docker Engine 20.10 or newer.' },
    );
  }
  return {
    apiVersion: olderThan(offered, newestVersion) ? offered : newestVersion,
    isPodman: (answer.Components ?? []).some(({ Name }) => Name === 'Podman Engine'),
  };
}

/** Compares versions such as 1.9 and 1.41 number by number. */
function olderThan(version: string, other: string): boolean {
  return version.localeCompare(other, 'en', { numeric: true }) < 0;
}

/**
 * The addresses where an engine may listen. If the user names one, it is the only candidate: the configured
 * host, then DOCKER_HOST, DOCKER_CONTEXT, the `docker` CLI's current context, and CONTAINER_HOST, which is
 * Podman's. Otherwise the usual sockets, the most common one first.
 *
 * @param certificates the folder for the configured host; default: the one that the environment names
 */
export async function candidates(
  host: string | undefined,
  env: NodeJS.ProcessEnv,
  certificates?: string,
): Promise<EngineCandidate[]> {
  if (host !== undefined) {
    const tls = certificates === undefined ? await tlsFromEnv(env) : await readTlsFolder(certificates);
    return [{ host, source: 'the configured host', isNamed: true, tls }];
  }
  if (env.DOCKER_HOST) {
    return [{ host: env.DOCKER_HOST, source: 'DOCKER_HOST', isNamed: true, tls: await tlsFromEnv(env) }];
  }
  const context = await currentContext(env);
  if (context !== undefined) return [await contextCandidate(context, env)];
  if (env.CONTAINER_HOST) {
    return [{ host: env.CONTAINER_HOST, source: 'CONTAINER_HOST', isNamed: true }];
  }
  return usualSockets(env);
}

/** As the `docker` CLI reads it: any value of DOCKER_TLS_VERIFY turns TLS on. */
async function tlsFromEnv(env: NodeJS.ProcessEnv) {
  if (!env.DOCKER_TLS_VERIFY) return undefined;
  return readTlsFolder(env.DOCKER_CERT_PATH ?? configFolder(env));
}

function usualSockets(env: NodeJS.ProcessEnv): EngineCandidate[] {
  const home = env.HOME ?? userInfo().homedir;
  const runtime = env.XDG_RUNTIME_DIR ?? `/run/user/${userInfo().uid}`;
  return [
    { path: '/var/run/docker.sock', source: 'the default socket' },
    { path: join(home, '.docker/run/docker.sock'), source: 'Docker Desktop' },
    { path: join(runtime, 'docker.sock'), source: 'rootless Docker' },
    { path: join(home, '.colima/default/docker.sock'), source: 'Colima' },
    { path: join(runtime, 'podman/podman.sock'), source: 'rootless Podman' },
    { path: '/run/podman/podman.sock', source: 'Podman' },
  ].map(({ path, source }) => ({ host: `unix://${path}`, source, isNamed: false }));
}

interface ReachedEngine {
  address: EngineAddress;
  /** Why a request failed, if the forwarding can tell. */
  failure(): Promise<OffsiteError | undefined>;
  /** Stops the forwarding, if there is one. */
  close(): Promise<void>;
}

/** Turns a candidate's URL into an address to connect to; for `ssh://` this starts the forwarding. */
async function reach(candidate: EngineCandidate, options: ReachOptions): Promise<ReachedEngine> {
  const { host, tls } = candidate;
  const direct = { failure: async () => undefined, close: async () => undefined };
  // Do not use the URL parser here: it would decode the path.
  const path = /^unix:\/\/(.+)$/.exec(host)?.[1];
  if (path !== undefined) return { address: { kind: 'socket', path }, ...direct };

  const url = URL.canParse(host) ? new URL(host) : undefined;
  switch (url?.hostname ? url.protocol : undefined) {
    case 'tcp:':
    case 'http:':
    case 'https:': {
      const secure = tls !== undefined || url?.protocol === 'https:';
      const port = Number(url?.port || (secure ? 2376 : 2375));
      const hostname = (url?.hostname ?? '').replace(/^\[|\]$/g, '');
      return {
        address: secure
          ? { kind: 'https', host: hostname, port, tls: tls ?? {} }
          : { kind: 'http', host: hostname, port },
        ...direct,
      };
    }
    case 'ssh:': {
      const forward = await forwardOverSsh(url as URL, options);
      return { ...forward, address: { kind: 'socket', path: forward.socketPath } };
    }
    default:
      throw inputError('ENGINE_BAD_ADDRESS', `Not an engine's address: ${host} (${candidate.source})`, {
        hint: 'Write unix:///path, tcp://host:port or ssh://user@host.',
      });
  }
}

/** An address that was tried, and why no engine could be used there. */
export interface TriedEngine {
  /** `unix:///var/run/docker.sock`. */
  host: string;
  /** What named it: `DOCKER_HOST`, `the default socket`. */
  source: string;
  failure: string;
}

/** No engine answered at any address that was tried. */
export class EngineUnreachable extends OffsiteError {
  readonly tried: readonly TriedEngine[];
  /** The user chose the engine, so no other may be used. */
  readonly isNamed: boolean;
  /** There is a socket that this user may not open. */
  readonly isForbidden: boolean;

  constructor(
    tried: readonly TriedEngine[],
    { isNamed, hint, cause }: { isNamed: boolean; hint?: string | undefined; cause: unknown },
  ) {
    const forbidden = tried.filter(({ failure }) => failure.includes('EACCES'));
    const isForbidden = forbidden.length > 0;
    const sockets = forbidden.map(({ host }) => host.replace('unix://', '')).join(', ');
    const why = isForbidden ? `: your user may not open ${sockets}` : '';
    const lines = tried.map(({ host, source, failure }) => `  ${host} (${source}): ${failure}`);
    super(`No engine answers${why}. Tried:\n${lines.join('\n')}`, {
      code: 'ENGINE_UNREACHABLE',
      kind: 'infrastructure',
      hint: hint ?? (isForbidden ? forbiddenHint(sockets) : startHint(isNamed ? tried[0] : undefined)),
      cause,
    });
    this.tried = tried;
    this.isNamed = isNamed;
    this.isForbidden = isForbidden;
  }
}

function forbiddenHint(sockets: string): string {
  return sockets.includes('podman')
    ? 'Run `systemctl --user enable --now podman.socket` for a Podman of your own.'
    : 'Add your user to the group docker and log in again, or use a rootless engine.';
}

/** @param named the engine that the user chose */
function startHint(named: TriedEngine | undefined): string {
  const podman = 'Podman with `systemctl --user enable --now podman.socket`';
  if (named === undefined) return `Start Docker, or ${podman}, or name an engine with DOCKER_HOST.`;
  const who = named.source === 'the configured host' ? 'The configuration' : named.source;
  const start = named.host.includes('podman') ? `start ${podman}` : 'start the engine';
  return `${who} names this engine, so no other is tried: correct that, or ${start}.`;
}
