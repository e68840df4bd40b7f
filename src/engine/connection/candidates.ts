import { userInfo } from 'node:os';
import { join } from 'node:path';
import type { EngineCandidate } from './address.ts';
import { configFolder, contextCandidate, currentContext } from './docker-context.ts';
import { readTlsFolder } from './tls-folder.ts';

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
  if (process.platform === 'win32') {
    return [{ host: 'npipe:////./pipe/docker_engine', source: 'the default pipe', isNamed: false }];
  }
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
