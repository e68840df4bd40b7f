import { access, realpath, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { OffsiteError } from '../offsite-error.ts';
import { runHostProgram, withSystemPath } from './host-program.ts';
import { type NodeBuild, runningBuild, unfitFor } from './running-node.ts';

export interface NodeSource {
  /** The major version that the image needs. */
  major: number;
  /** The glibc of the image: `2.36`. */
  glibc: string;
  /** An empty folder, for a Node that has to be fetched. */
  folder: string;
  /** The path of the host's npm. */
  npm: string;
  /** npm's environment. */
  env: NodeJS.ProcessEnv;
  log: (line: string) => void;
  signal?: AbortSignal | undefined;
  /** Default: that of this process. */
  running?: NodeBuild;
  /** Default: the binaries that npm installed with a checkout. */
  installed?: readonly string[];
}

/** Node as a package of npm, for hosts whose own Node does not run in the image. */
export const fetchedNode = {
  version: '24.21.0',
  /** By Node's name of the architecture. */
  integrity: {
    x64: 'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
    arm64: 'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
  } as Readonly<Record<string, string>>,
};

/** 60 MB, over a slow line. */
const fetchMs = 600_000;

/**
 * The path of a Node for the image: that of a checkout, else the one that runs this process if it runs in the
 * image too, else one from npm's registry. Throws an infrastructure `OffsiteError` if there is none.
 */
export async function nodeBinary(source: NodeSource): Promise<string> {
  const { major, glibc, log, running = runningBuild(), installed = installedBinaries() } = source;
  for (const path of installed) if (await isThere(path)) return realpath(path);
  const unfit = unfitFor(running, { major, glibc });
  if (unfit === undefined) return realpath(process.execPath);
  const integrity = fetchedNode.integrity[running.arch];
  if (integrity === undefined || !fetchedNode.version.startsWith(`${major}.`)) {
    throw new OffsiteError(`The base image needs a Node ${major}. The Node of this process ${unfit}.`, {
      code: 'BASE_IMAGE_NO_NODE',
      kind: 'infrastructure',
      hint: `Run Offsite under a Node ${major} from nodejs.org.`,
    });
  }
  const name = `node-linux-${running.arch}`;
  log(
    `The Node of this process ${unfit}: fetching ${name} ${fetchedNode.version} from npm's registry (60 MB).`,
  );
  await fetchPackage({ name, version: fetchedNode.version, integrity }, source);
  return join(source.folder, 'node_modules', name, 'bin/node');
}

/** Has npm install one package, and compare it with the known checksum. */
export async function fetchPackage(
  { name, version, integrity }: { name: string; version: string; integrity: string },
  { folder, npm, env, signal }: Pick<NodeSource, 'folder' | 'npm' | 'env' | 'signal'>,
): Promise<void> {
  const dependencies = { [name]: version };
  const packages = { '': { dependencies }, [`node_modules/${name}`]: { version, integrity } };
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies }));
  const lock = { lockfileVersion: 3, requires: true, packages };
  await writeFile(join(folder, 'package-lock.json'), JSON.stringify(lock));
  await runHostProgram({
    command: npm,
    args: ['ci', '--ignore-scripts', '--loglevel=error', '--no-audit', '--no-fund'],
    purpose: `fetch ${name}@${version}`,
    env: withSystemPath(env),
    cwd: folder,
    deadlineMs: fetchMs,
    signal,
  });
}

/** A checkout has a Node of its own, as a package of npm. */
function installedBinaries(): string[] {
  const { resolve } = createRequire(import.meta.url);
  try {
    return [join(dirname(resolve(`node-${process.platform}-${process.arch}/package.json`)), 'bin/node')];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return [];
    throw error;
  }
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
