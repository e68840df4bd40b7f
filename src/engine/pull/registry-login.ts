import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { parseForeignJson } from '../../base/parse-json.ts';
import { registryLogins } from '../../bounds/suite.ts';
import { configFolder, readJson } from '../connection/docker-context.ts';
import type { RegistryLogin } from '../port/images.ts';

const HelperAnswer = z.object({ Username: z.string(), Secret: z.string() });

/**
 * The registry of images whose names have no registry: its host in image names, its key in Docker's settings.
 */
const hub = { host: 'docker.io', key: 'index.docker.io' };

/** The host of an image's registry. */
export function registryOf(image: string): string {
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
    throw new OffsiteError(`${program}, which Docker's settings name for ${address}, does not work: ${why}`, {
      code: 'REGISTRY_LOGIN',
      kind: 'infrastructure',
      hint: 'Check `docker pull`, or remove the program from the config.json of Docker.',
    });
  }
}
