import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { OffsiteError } from '../../src/offsite-error.ts';
import type { EngineAddress } from './ping-engine.ts';

/** A place where an engine may be. A chosen one was named by the user, and no other will do. */
export interface EngineCandidate {
  address: EngineAddress;
  /** Who names it: `DOCKER_HOST`, `the docker context "colima"`, `the default socket`. */
  namedBy: string;
  chosen: boolean;
}

export const systemSocket = '/var/run/docker.sock';

/**
 * The places to look for an engine, best first: DOCKER_HOST; the context that DOCKER_CONTEXT or the docker CLI's
 * configuration selects; the usual sockets. Throws an `input` error for a name or address that can't be used.
 */
export async function engineCandidates(env: NodeJS.ProcessEnv, home: string): Promise<EngineCandidate[]> {
  if (env.DOCKER_HOST) {
    return [{ address: addressOf(env.DOCKER_HOST, 'DOCKER_HOST'), namedBy: 'DOCKER_HOST', chosen: true }];
  }
  const folder = env.DOCKER_CONFIG || join(home, '.docker');
  const context =
    env.DOCKER_CONTEXT ||
    (await jsonOf<{ currentContext?: string }>(join(folder, 'config.json')))?.currentContext;
  if (context && context !== 'default') {
    const namedBy = `the docker context "${context}"`;
    return [{ address: await contextAddress(folder, context, namedBy), namedBy, chosen: true }];
  }
  const usual = [
    systemSocket,
    join(home, '.docker/run/docker.sock'), // Docker Desktop
    join(home, '.colima/default/docker.sock'),
    ...(env.XDG_RUNTIME_DIR
      ? [join(env.XDG_RUNTIME_DIR, 'docker.sock'), join(env.XDG_RUNTIME_DIR, 'podman/podman.sock')]
      : []),
  ];
  return usual.map((socketPath) => ({
    address: { socketPath },
    namedBy: `the usual socket ${socketPath}`,
    chosen: false,
  }));
}

/** Reads `unix:///path` and `tcp://host:port`; TLS and ssh are the docker CLI's, and the set-up does without. */
function addressOf(url: string, namedBy: string): EngineAddress {
  if (url.startsWith('unix://')) return { socketPath: url.slice('unix://'.length) };
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed?.protocol === 'tcp:' || parsed?.protocol === 'http:') {
    return { host: parsed.hostname, port: Number(parsed.port || 2375) };
  }
  throw new OffsiteError(`${namedBy} is ${url}, which the set-up cannot use.`, {
    code: 'ENGINE_ADDRESS_UNUSABLE',
    kind: 'input',
    hint: 'It understands unix:///path and tcp://host:port. For ssh, forward the socket and name that.',
  });
}

async function contextAddress(folder: string, name: string, namedBy: string): Promise<EngineAddress> {
  const id = createHash('sha256').update(name).digest('hex');
  const path = join(folder, 'contexts/meta', id, 'meta.json');
  const meta = await jsonOf<{ Endpoints?: { docker?: { Host?: string } } }>(path);
  const host = meta?.Endpoints?.docker?.Host;
  if (host !== undefined) return addressOf(host, namedBy);
  throw new OffsiteError(`${namedBy} is selected, and ${path} does not describe it.`, {
    code: 'ENGINE_CONTEXT_UNKNOWN',
    kind: 'input',
    hint: "Select another with 'docker context use', or unset DOCKER_CONTEXT.",
  });
}

async function jsonOf<T>(path: string): Promise<T | undefined> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as T;
  } catch (cause) {
    throw new OffsiteError(`${path} is not JSON.`, { code: 'ENGINE_CONTEXT_UNKNOWN', kind: 'input', cause });
  }
}
