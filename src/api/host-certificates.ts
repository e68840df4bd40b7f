import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { inputError, messageOf, OffsiteError } from '../base/offsite-error.ts';
import { readFile as readRegularFile } from '../suite/read-file.ts';

/** Certificate authorities that this host trusts in addition to the public ones, as PEM. */
export interface CaBundle {
  path: string;
  pem: Buffer;
  /** The setting that named the file: `NODE_EXTRA_CA_CERTS`. */
  namedBy: string;
}

export interface CaBundleSources {
  env: NodeJS.ProcessEnv;
  /** The user's own setting for Offsite. */
  explicit?: string | undefined;
  /** npm's `cafile` setting; see `npmCafile`. */
  npmCafile?: string | undefined;
}

/**
 * The certificates that this host trusts in addition to the public authorities: `caBundle` of the
 * configuration, else the bundle that the environment or npm names.
 */
export async function hostCertificates(
  config: { caBundle?: string | undefined },
  env: NodeJS.ProcessEnv,
): Promise<CaBundle | undefined> {
  return caBundleOf({ env, explicit: config.caBundle, npmCafile: await npmCafile(env) });
}

/**
 * Finds the host's CA bundle, for the parts of Offsite that use TLS: the explicit setting, otherwise the
 * first of NODE_EXTRA_CA_CERTS, SSL_CERT_FILE and npm's `cafile` that names a readable PEM file. Undefined
 * means that the public authorities are enough. Throws an `input` error if the explicit setting names no such
 * file. The others are shared with other programs, so a stale one is skipped, as those programs do.
 */
export async function caBundleOf({
  env,
  explicit,
  npmCafile,
}: CaBundleSources): Promise<CaBundle | undefined> {
  if (explicit) return readBundle(explicit, 'the CA bundle setting');
  const candidates = [
    ['NODE_EXTRA_CA_CERTS', env.NODE_EXTRA_CA_CERTS],
    ['SSL_CERT_FILE', env.SSL_CERT_FILE],
    ["npm's cafile", npmCafile],
  ] as const;
  for (const [namedBy, path] of candidates) {
    if (!path) continue;
    const bundle = await readBundle(path, namedBy).catch((error: OffsiteError) => error);
    if (!(bundle instanceof OffsiteError)) return bundle;
  }
  return undefined;
}

/** npm's `cafile`, from the environment or the user's `.npmrc`, without starting npm. */
export async function npmCafile(
  env: NodeJS.ProcessEnv,
  home: string = homedir(),
): Promise<string | undefined> {
  const fromEnv = env.npm_config_cafile ?? env.NPM_CONFIG_CAFILE;
  if (fromEnv) return fromEnv;
  const path = env.npm_config_userconfig ?? env.NPM_CONFIG_USERCONFIG ?? join(home, '.npmrc');
  const text = await readFile(path, 'utf8').catch(() => ''); // no such file: no such setting
  return text.match(/^\s*cafile\s*=\s*"?([^"\r\n]+?)"?\s*$/m)?.[1];
}

async function readBundle(path: string, namedBy: string): Promise<CaBundle> {
  const problem = (what: string, cause?: unknown) =>
    inputError('CA_BUNDLE_UNUSABLE', `${namedBy} names ${path}, which ${what}.`, {
      hint: 'Name a file of PEM certificates, or remove the setting.',
      cause,
    });
  let pem: Buffer;
  try {
    pem = readRegularFile(path).content;
  } catch (cause) {
    throw problem(`cannot be read (${messageOf(cause)})`, cause);
  }
  if (!pem.includes('-----BEGIN CERTIFICATE-----')) throw problem('holds no PEM certificate');
  return { path, pem, namedBy };
}
