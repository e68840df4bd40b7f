import { createReadStream } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findHostProgram, runHostProgram, withSystemPath } from '../base/host-program.ts';
import { infrastructureError, OffsiteError } from '../base/offsite-error.ts';
import type { During } from '../base/progress.ts';
import { Semaphore } from '../base/semaphore.ts';
import type { EnginePort } from '../engine/port/engine-port.ts';
import {
  type BaseImageRecipe,
  baseImageName,
  pipInstall,
  recipeHash,
  recipeLabel,
  warnWithoutUv,
  withoutUv,
} from './recipe.ts';

interface DebianBuild {
  engine: EnginePort;
  recipe: BaseImageRecipe;
  log: (line: string) => void;
  during: During;
  env: NodeJS.ProcessEnv;
  /** A PEM file. */
  caBundle?: string | undefined;
  signal?: AbortSignal;
  /** Why the pull from the registry failed; repeated in the error if this build is not possible either. */
  registryError: OffsiteError;
}

/** Milliseconds: enough for 100 MB of packages over a slow connection. */
const buildMs = 900_000;

const finishRoot = fileURLToPath(new URL('./finish-root.sh', import.meta.url));

/**
 * Builds the image from Debian's packages and npm's registry, without a container registry. If this host
 * cannot do that, throws an infrastructure `OffsiteError` that says what to do.
 */
export async function buildFromDebian(build: DebianBuild): Promise<void> {
  const { engine, recipe, log, during, env, caBundle, signal } = build;
  const { node, npm } = recipe;
  await prepareHost(build);
  await using folder = await temporaryFolder(env);
  const packages = join(folder.path, 'packages');
  const archive = join(folder.path, 'root.tar');
  await during(`Fetching Node ${node.version} and npm ${npm.version}`, () =>
    fetchNode({ folder: packages, recipe, arch: process.arch, env, caBundle, signal }),
  );
  const own = {
    LC_ALL: 'C.UTF-8',
    TMPDIR: folder.path,
    OFFSITE_FINISH: finishRoot,
    OFFSITE_PEM: caBundle,
    OFFSITE_PACKAGES: join(packages, 'node_modules'),
    OFFSITE_UV: recipe.uv,
    OFFSITE_PIP: pipInstall,
    OFFSITE_WITHOUT_UV: withoutUv,
  };
  let printed = '';
  await during(`Building the image from Debian ${recipe.debianSuite}`, async () => {
    printed = await runHostProgram({
      command: 'mmdebstrap',
      args: mmdebstrapArgs(recipe, archive, env.OFFSITE_DEBIAN_MIRROR || undefined),
      purpose: 'build the base image from Debian packages',
      env: withSystemPath({ ...env, ...own }),
      deadlineMs: buildMs,
      hint: 'Set OFFSITE_DEBIAN_MIRROR to use another mirror.',
      signal,
    });
    await engine.images.import({
      root: createReadStream(archive),
      name: baseImageName(recipe),
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C.UTF-8' },
      command: ['bash'],
      labels: { [recipeLabel]: recipeHash(recipe) },
      signal,
    });
  });
  warnWithoutUv(printed, log);
}

/**
 * Makes an archive of a minimal Debian with the recipe's packages. mmdebstrap checks the packages against
 * Debian's keyring, so plain HTTP is no risk. Its sources include updates and security fixes, unless the user
 * names a mirror, which may lack them.
 */
function mmdebstrapArgs(recipe: BaseImageRecipe, archive: string, mirror: string | undefined): string[] {
  return [
    '--mode=root',
    '--format=tar',
    '--variant=minbase',
    `--include=${recipe.debianPackages.join(',')}`,
    '--aptopt=Acquire::Languages "none"',
    '--aptopt=Acquire::GzipIndexes "true"',
    '--dpkgopt=force-unsafe-io',
    '--dpkgopt=path-exclude=/usr/share/man/*',
    '--dpkgopt=path-exclude=/usr/share/doc/*',
    '--dpkgopt=path-include=/usr/share/doc/*/copyright',
    // Without this file, pip may install into the system, as in the official images of Python.
    '--dpkgopt=path-exclude=/usr/lib/python3*/EXTERNALLY-MANAGED',
    '--customize-hook=sh "$OFFSITE_FINISH" "$1"',
    recipe.debianSuite,
    archive,
    ...(mirror === undefined ? [] : [mirror]),
  ];
}

async function prepareHost({
  engine,
  recipe,
  during,
  env,
  signal,
  registryError,
}: DebianBuild): Promise<void> {
  const hasMmdebstrap = (await findHostProgram('mmdebstrap', env)) !== undefined;
  const { arch: engineArch } = await engine.facts(signal);
  const obstacle = debianObstacle({
    platform: process.platform,
    uid: process.geteuid?.(),
    hasMmdebstrap,
    hasAptGet: (await findHostProgram('apt-get', env)) !== undefined,
    mayInstall: env.OFFSITE_NO_INSTALL !== '1',
    hostArch: process.arch,
    engineArch,
  });
  if (obstacle !== undefined) {
    throw infrastructureError(
      'BASE_IMAGE_UNAVAILABLE',
      `There is no base image. ${registryError.message}\n` +
        `It could not be built from Debian packages either: ${obstacle}.`,
      {
        hint:
          `Let the engine reach a registry and pull ${recipe.registryImage} (or 'docker load' that image), ` +
          "run this as root on a Debian-like Linux on the engine's machine, or set a sandbox image.",
        cause: registryError,
      },
    );
  }
  if (hasMmdebstrap) return;
  await during('Installing mmdebstrap', () =>
    installDebianPackages({ packages: ['mmdebstrap', 'debian-archive-keyring'], env, signal }),
  );
}

/** The facts that decide whether this host can build the image from Debian's packages. */
export interface DebianSituation {
  platform: NodeJS.Platform;
  /** Effective user id; undefined on systems without user ids. */
  uid: number | undefined;
  hasMmdebstrap: boolean;
  hasAptGet: boolean;
  /** Whether Offsite may install Debian packages on the host. */
  mayInstall: boolean;
  /** Node's name for the host's architecture: `x64`. */
  hostArch: string;
  /** The kernel's name for the engine's architecture: `x86_64`. */
  engineArch: string;
}

/** The architectures that recipes have a Node for. */
const kernelNames: Record<string, string> = { x64: 'x86_64', arm64: 'aarch64' };

/** Why this host cannot build the image from Debian's packages, as a clause; undefined if it can. */
export function debianObstacle(situation: DebianSituation): string | undefined {
  const { platform, uid, hasMmdebstrap, hasAptGet, mayInstall, hostArch, engineArch } = situation;
  if (platform !== 'linux') return `that needs Linux, and this is ${platform}`;
  const kernelName = kernelNames[hostArch];
  if (kernelName === undefined) return `Offsite has no Node for ${hostArch}`;
  if (kernelName !== engineArch) return `the engine runs ${engineArch} and this host ${hostArch}`;
  if (uid !== 0) return 'that needs root';
  if (hasMmdebstrap) return undefined;
  if (!mayInstall) return 'mmdebstrap is missing and OFFSITE_NO_INSTALL forbids installing it';
  if (!hasAptGet) return 'mmdebstrap is missing and there is no apt-get to install it with';
  return undefined;
}

const prefix = 'offsite-base-image-';
const abandonedAfterMs = 24 * 60 * 60 * 1000;

/**
 * Creates a folder for unpacking a whole system, which takes 2 GB: not in `/tmp`, which may be memory.
 * Disposing removes it. Also removes folders of killed processes: those older than a day, because no build
 * takes that long.
 */
async function temporaryFolder(env: NodeJS.ProcessEnv): Promise<AsyncDisposable & { path: string }> {
  const parent = env.TMPDIR || '/var/tmp';
  for (const name of await readdir(parent)) {
    if (!name.startsWith(prefix)) continue;
    const { mtimeMs } = await stat(join(parent, name));
    if (Date.now() - mtimeMs > abandonedAfterMs) await remove(join(parent, name));
  }
  const path = await mkdtemp(join(parent, prefix));
  // The user _apt must be able to read the packages there.
  await chmod(path, 0o755);
  return { path, [Symbol.asyncDispose]: () => remove(path) };
}

/** Throws if something is still mounted inside, so that nothing of the host's is deleted. */
async function remove(folder: string): Promise<void> {
  const mounts = (await readFile('/proc/self/mounts', 'utf8')).split('\n').map((line) => line.split(' ')[1]);
  const inside = mounts.filter((point) => point?.startsWith(`${folder}/`));
  if (inside.length > 0) {
    throw infrastructureError(
      'BASE_IMAGE_FOLDER_MOUNTED',
      `Left ${folder} behind: ${inside.join(', ')} is still mounted inside it.`,
      { hint: 'Unmount it, then remove the folder.' },
    );
  }
  await rm(folder, { recursive: true, force: true, maxRetries: 3 });
}

interface NodeFetch {
  /** The folder to make; afterwards `node_modules` in it holds the packages. */
  folder: string;
  recipe: Pick<BaseImageRecipe, 'node' | 'npm'>;
  /** Node's name for the architecture: `x64`. */
  arch: string;
  env: NodeJS.ProcessEnv;
  /** A PEM file of certificate authorities that npm trusts too. */
  caBundle?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** Milliseconds: enough for 60 MB over a slow connection. */
const fetchMs = 600_000;

/**
 * Fetches the recipe's Node and npm from npm's registry, or npm's cache, and compares them with the recipe's
 * checksums. Throws an infrastructure `OffsiteError`.
 */
export async function fetchNode({ folder, recipe, arch, env, caBundle, signal }: NodeFetch): Promise<void> {
  const npm = await findHostProgram('npm', env);
  if (npm === undefined) {
    throw infrastructureError(
      'BASE_IMAGE_NO_NPM',
      'The base image needs npm, and this host has no npm to fetch it with.',
      { hint: 'Install npm.' },
    );
  }
  const integrity = recipe.node.integrity[arch];
  const locked = {
    [`node-linux-${arch}`]: { version: recipe.node.version, integrity },
    npm: recipe.npm,
  };
  const dependencies: Record<string, string> = {};
  const packages: Record<string, unknown> = { '': { dependencies } };
  for (const [name, entry] of Object.entries(locked)) {
    dependencies[name] = entry.version;
    packages[`node_modules/${name}`] = entry;
  }
  const lock = { lockfileVersion: 3, requires: true, packages };
  await mkdir(folder);
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies }));
  await writeFile(join(folder, 'package-lock.json'), JSON.stringify(lock));
  const trust = caBundle === undefined ? {} : { npm_config_cafile: caBundle, NODE_EXTRA_CA_CERTS: caBundle };
  const quiet = ['--loglevel=error', '--no-audit', '--no-fund'];
  await runHostProgram({
    command: npm,
    args: ['ci', '--ignore-scripts', '--prefer-offline', ...quiet],
    purpose: `fetch Node ${recipe.node.version} and npm ${recipe.npm.version}`,
    env: withSystemPath({ ...env, ...trust }),
    cwd: folder, // so that no project's .npmrc applies
    deadlineMs: fetchMs,
    hint: 'Set npm_config_registry to use another registry, NODE_EXTRA_CA_CERTS to add certificate authorities.',
    signal,
  });
}

interface DebianInstall {
  packages: readonly string[];
  env: NodeJS.ProcessEnv;
  signal?: AbortSignal;
}

/** How long to wait for another apt to finish, in seconds. */
const lockTimeout = 120;

/** An apt that reads the package lists while another one of this process fetches them finds no package. */
const oneInstall = new Semaphore(1);

/**
 * Installs Debian packages on the host, as root, without questions. Fetches package lists only if the first
 * attempt fails, because they may be missing or outdated. Throws an infrastructure `OffsiteError` with apt's
 * last lines.
 */
export async function installDebianPackages({ packages, env, signal }: DebianInstall): Promise<void> {
  using _ = await oneInstall.acquire(signal ?? new AbortController().signal);
  const apt = (args: string[], purpose: string) =>
    runHostProgram({
      command: 'apt-get',
      args: ['-q', '-o', `DPkg::Lock::Timeout=${lockTimeout}`, ...args],
      purpose,
      env: { ...withSystemPath(env), DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' },
      deadlineMs: 600_000,
      signal,
    });
  const purpose = `install ${packages.join(' ')}`;
  const install = () => apt(['install', '-y', '--no-install-recommends', ...packages], purpose);
  const first = await outcomeOf(install());
  if (first === undefined) return;
  // One unreachable source makes `update` fail even if the package's source works: only the install counts.
  const update = await outcomeOf(apt(['update'], 'update the package lists'));
  const second = await outcomeOf(install());
  if (second === undefined) return;
  throw infrastructureError(
    'DEBIAN_INSTALL_FAILED',
    [second, update]
      .filter((error) => error !== undefined)
      .map((error) => error.message)
      .join('\n'),
    {
      hint: `Run 'apt-get update && apt-get install ${packages.join(' ')}' yourself to see what is wrong.`,
      cause: second,
    },
  );
}

/** The expected error of some work, or undefined if it succeeded. */
async function outcomeOf(work: Promise<unknown>): Promise<OffsiteError | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    if (error instanceof OffsiteError) return error;
    throw error;
  }
}
