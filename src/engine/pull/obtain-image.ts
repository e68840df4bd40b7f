import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { abortable } from '../../base/deadline.ts';
import { infrastructureError, messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { parseForeignJson } from '../../base/parse-json.ts';
import { registryLogins } from '../../bounds/suite.ts';
import { configFolder, readJson } from '../connection/docker-context.ts';
import type { EnginePort } from '../port/engine-port.ts';
import type { Image, PullProgress, RegistryLogin } from '../port/images.ts';

/** Whether images that the engine does not have are pulled; `always` also asks for newer ones. */
export type PullPolicy = 'never' | 'missing' | 'always';

export interface ObtainOptions {
  signal?: AbortSignal | undefined;
  /** Called when a pull begins, and while it runs. */
  onPull?: ((progress: PullProgress) => void) | undefined;
}

export type ObtainImage = (name: string, options?: ObtainOptions) => Promise<Image | undefined>;

/** A pull that ended this recently, in milliseconds, is not tried again, whether it succeeded or not. */
const recentMs = 60_000;
/** Offsite makes these images itself; those that a registry has under such names are not Offsite's. */
const ours = /^offsite(-test)?\//;
const isId = /^(sha256:)?[0-9a-f]{64}$/;

interface Pull {
  /** When it ended; infinite while it runs. */
  endedAt: number;
  done: Promise<unknown>;
  /** Who waits for it. */
  waiting: Set<ObtainOptions>;
}

/**
 * Finds images, and pulls them as the policy says. Concurrent requests for an image wait for one pull. It
 * resolves with undefined for an image that is missing and must not be pulled. It throws `IMAGE_REFUSED`, of
 * kind `input`, if the registry says no, and `IMAGE_PULL_FAILED` if no registry gives the image. One round
 * trip for an image that the engine has, with any policy but `always`.
 */
export function imageSource(port: EnginePort, policy: PullPolicy, env: NodeJS.ProcessEnv): ObtainImage {
  const pulls = new Map<string, Pull>();

  function pull(name: string): Pull {
    const known = pulls.get(name);
    if (known && port.clock.now() - known.endedAt < recentMs) return known;
    const waiting: Pull['waiting'] = new Set();
    const onProgress = (progress: PullProgress) => {
      for (const { onPull } of waiting) onPull?.(progress);
    };
    const work = async () => {
      const login = await loginFor(name, env);
      await port.images.pull(withTag(name), { login, onProgress });
    };
    const started: Pull = { endedAt: Number.POSITIVE_INFINITY, done: work(), waiting };
    const end = () => {
      started.endedAt = port.clock.now();
    };
    started.done.then(end, end);
    pulls.set(name, started);
    return started;
  }

  return async (name, options = {}) => {
    const { signal, onPull } = options;
    const found = await port.images.find(name, signal);
    const mayPull = policy !== 'never' && !ours.test(name) && !isId.test(name);
    if (!mayPull || (found && policy === 'missing')) return found;
    const { done, waiting } = pull(name);
    waiting.add(options);
    onPull?.({ bytes: 0, total: 0 });
    try {
      await abortable(done, signal);
    } catch (error) {
      // An older image is better than none.
      if (!found || signal?.aborted) throw error;
    } finally {
      waiting.delete(options);
    }
    return port.images.find(name, signal);
  };
}

/** Without a tag, the engine would pull all tags. */
function withTag(name: string): string {
  const last = name.slice(name.lastIndexOf('/') + 1);
  return /[:@]/.test(last) ? name : `${name}:latest`;
}

/** Why an image could not be pulled, without the prefix `Could not pull NAME: `. */
export function pullObstacle(thrown: unknown): string {
  return messageOf(thrown).replace(/^Could not pull \S+: /, '');
}

/** Whether a registry answered and said no, which another try would not change. */
export function isRefusal(thrown: unknown): boolean {
  return thrown instanceof OffsiteError && thrown.code === 'IMAGE_REFUSED';
}

const HelperAnswer = z.object({ Username: z.string(), Secret: z.string() });

/**
 * The registry of images whose names have no registry: its host in image names, its key in Docker's settings.
 */
const hub = { host: 'docker.io', key: 'index.docker.io' };

/** The host of an image's registry. */
function registryOf(image: string): string {
  const [first = '', ...path] = image.split('/');
  // Names on Docker Hub have no capital letters, so engines take a first part with capital letters for a
  // host.
  const isHost = path.length > 0 && (/[.:A-Z]/.test(first) || first === 'localhost');
  return isHost ? first : hub.host;
}

/**
 * The login that `docker login` keeps for the registry of an image: in Docker's `config.json`, or in the
 * credential helper that the file names. Undefined if there is none. Throws an `input` error if the file
 * cannot be read, and an infrastructure error if the helper fails. The login goes to the engine with the
 * request to pull, as the docker CLI sends it, and nowhere else.
 */
export async function loginFor(image: string, env: NodeJS.ProcessEnv): Promise<RegistryLogin | undefined> {
  const config = await readJson(join(configFolder(env), 'config.json'));
  if (!config) return undefined;
  const host = registryOf(image);
  const key = host === hub.host ? hub.key : host;
  const address = host === hub.host ? `https://${hub.key}/v1/` : host;
  const { credHelpers = {}, credsStore, auths = {} } = config as DockerConfig;
  const helper = Object.entries(credHelpers).find(([name]) => hostOf(name) === key)?.[1] ?? credsStore;
  if (typeof helper === 'string' && helper !== '') return askHelper(helper, address, env);
  const entry = Object.entries(auths).find(([name]) => hostOf(name) === key)?.[1];
  return entry && loginOf(entry, address);
}

interface DockerConfig {
  credsStore?: string;
  credHelpers?: Record<string, string>;
  auths?: Record<string, AuthEntry>;
}

interface AuthEntry {
  /** `user:password` in base64. */
  auth?: string;
  identitytoken?: string;
}

/** Old settings have `https://host/v1/` in place of `host`. */
function hostOf(key: string): string {
  return key.replace(/^https?:\/\//, '').replace(/\/.*$/, '');
}

function loginOf({ auth = '', identitytoken }: AuthEntry, address: string): RegistryLogin | undefined {
  if (identitytoken) return { serveraddress: address, identitytoken };
  const text = Buffer.from(auth, 'base64').toString();
  const colon = text.indexOf(':');
  if (colon === -1) return undefined;
  return { serveraddress: address, username: text.slice(0, colon), password: text.slice(colon + 1) };
}

async function askHelper(
  name: string,
  address: string,
  env: NodeJS.ProcessEnv,
): Promise<RegistryLogin | undefined> {
  const program = `docker-credential-${name}`;
  try {
    const asking = promisify(execFile)(program, ['get'], {
      env,
      timeout: registryLogins.time.helper,
      maxBuffer: registryLogins.bytes.answer,
    });
    // A program that does not read its input may have ended: its exit code says what is wrong.
    asking.child.stdin?.on('error', () => undefined);
    asking.child.stdin?.end(address);
    const answer = HelperAnswer.parse(parseForeignJson((await asking).stdout));
    const { Username: username, Secret: secret } = answer;
    if (username === '<token>') return { serveraddress: address, identitytoken: secret };
    return { serveraddress: address, username, password: secret };
  } catch (error) {
    const { stdout = '' } = error as { stdout?: string };
    if (/credentials not found/i.test(stdout)) return undefined;
    // What it printed may hold the login.
    const hasRun = (error as { cmd?: string }).cmd === undefined;
    const why = hasRun ? 'its answer is not a login' : messageOf(error).split('\n')[0];
    throw infrastructureError(
      'REGISTRY_LOGIN',
      `${program}, which Docker's settings name for ${address}, does not work: ${why}`,
      { hint: 'Check `docker pull`, or remove the program from the config.json of Docker.' },
    );
  }
}
