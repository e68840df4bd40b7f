import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { inputError } from '../../base/offsite-error.ts';

/** Where the `docker` CLI keeps its settings. */
export function configFolder(env: NodeJS.ProcessEnv): string {
  return env.DOCKER_CONFIG ?? join(env.HOME ?? userInfo().homedir, '.docker');
}

/** The context that the `docker` CLI would use; undefined for `default`, which means no context. */
export async function currentContext(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const inFile = async () => (await readJson(join(configFolder(env), 'config.json')))?.currentContext;
  const name = env.DOCKER_CONTEXT || (await inFile());
  return typeof name !== 'string' || name === '' || name === 'default' ? undefined : name;
}

/**
 * The engine of a context. Reads the files that `docker context create` writes, in a folder named by the
 * sha256 of the context's name.
 */
export async function contextCandidate(name: string, env: NodeJS.ProcessEnv): Promise<EngineCandidate> {
  const folder = createHash('sha256').update(name).digest('hex');
  const contexts = join(configFolder(env), 'contexts');
  const metadata = await readJson(join(contexts, 'meta', folder, 'meta.json'));
  const endpoint = (
    metadata?.Endpoints as { docker?: { Host?: string; SkipTLSVerify?: boolean } } | undefined
  )?.docker;
  if (!endpoint?.Host) {
    throw inputError('ENGINE_BAD_CONTEXT', `There is no Docker context "${name}".`, {
      hint: 'See `docker context ls`, or unset DOCKER_CONTEXT.',
    });
  }
  const tls = await readTlsFolder(join(contexts, 'tls', folder, 'docker'));
  const secured = Object.keys(tls).length > 0 || endpoint.SkipTLSVerify === true;
  return {
    host: endpoint.Host,
    source: `the Docker context "${name}"`,
    isNamed: true,
    tls: secured ? { ...tls, rejectUnauthorized: endpoint.SkipTLSVerify !== true } : undefined,
  };
}

/** Undefined if there is no such file. */
export async function readJson(path: string): Promise<Record<string, unknown> | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw inputError('ENGINE_BAD_CONTEXT', `Cannot read Docker's settings in ${path}`, {
      hint: 'Fix the file, or set DOCKER_HOST.',
      cause: error,
    });
  }
}

/**
 * Reads those of `ca.pem`, `cert.pem` and `key.pem` that exist: a server with a public certificate needs no
 * `ca.pem`.
 */
export async function readTlsFolder(folder: string): Promise<TlsMaterial> {
  const [ca, cert, key] = await Promise.all(
    ['ca.pem', 'cert.pem', 'key.pem'].map((name) => readIfThere(join(folder, name))),
  );
  const isThere = (text: string | undefined) => text !== undefined;
  return { ...(isThere(ca) && { ca }), ...(isThere(cert) && { cert }), ...(isThere(key) && { key }) };
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw inputError('ENGINE_CERTIFICATE', `Cannot read the certificate ${path}`, {
      hint: 'Check DOCKER_CERT_PATH and the permissions of the file.',
      cause: error,
    });
  }
}

/** Certificates for an engine behind TLS, in PEM. */
interface TlsMaterial {
  ca?: string;
  cert?: string;
  key?: string;
  /** False only if a context says so (`skip-tls-verify`). */
  rejectUnauthorized?: boolean;
}

/** Where an engine listens, as the client needs it. */
export type EngineAddress =
  | { kind: 'socket'; path: string }
  | { kind: 'http'; host: string; port: number }
  | { kind: 'https'; host: string; port: number; tls: TlsMaterial };

/** An address where an engine may listen, and where that address comes from. */
export interface EngineCandidate {
  /** As the user would write it: `unix:///var/run/docker.sock`. */
  host: string;
  /** What named it, for messages: `DOCKER_HOST`, `the Docker context "desktop"`. */
  source: string;
  /** The user chose it, so no other engine may be used. */
  isNamed: boolean;
  /** Set if the connection to the engine uses TLS. */
  tls?: TlsMaterial | undefined;
}
