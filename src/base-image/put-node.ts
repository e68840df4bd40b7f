import { access, chmod, copyFile, cp, mkdir, realpath, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { messageOf, OffsiteError } from '../offsite-error.ts';
import type { CaBundle } from './host-certificates.ts';
import { findHostProgram, runHostProgram, withSystemPath } from './host-program.ts';
import type { BaseImageRecipe } from './recipe.ts';

export interface NodePlacement {
  /** The folder that becomes /usr/local. */
  local: string;
  recipe: BaseImageRecipe;
  env: NodeJS.ProcessEnv;
  caBundle?: CaBundle;
  signal?: AbortSignal;
}

/** Puts Node and npm there: the pinned npm from its registry or, if that fails, the host's own. */
export async function putNode(placement: NodePlacement): Promise<void> {
  const { local, recipe, env } = placement;
  const npm = await findHostProgram('npm', env);
  if (npm === undefined) {
    throw new OffsiteError('The base image needs npm, and this host has no npm to fetch or copy it.', {
      code: 'BASE_IMAGE_NO_NPM',
      kind: 'infrastructure',
      hint: 'Install npm.',
    });
  }
  await mkdir(join(local, 'bin'), { recursive: true });
  const node = join(local, 'bin/node');
  await copyFile(await nodeBinary(recipe.nodeMajor), node);
  await chmod(node, 0o755);
  try {
    await fetchNpm(npm, placement);
  } catch (error) {
    if (!(error instanceof OffsiteError)) throw error;
    await copyInstalledNpm(npm, local, error);
  }
}

async function fetchNpm(npm: string, { local, recipe, env, caBundle, signal }: NodePlacement): Promise<void> {
  const name = `npm@${recipe.npmVersion}`;
  const certificates = caBundle && { npm_config_cafile: caBundle.path, NODE_EXTRA_CA_CERTS: caBundle.path };
  await runHostProgram({
    command: npm,
    args: ['install', '--global', '--prefix', local, '--loglevel=error', '--no-audit', '--no-fund', name],
    purpose: `fetch ${name}`,
    env: { ...withSystemPath(env), ...certificates },
    cwd: local, // so that no project's .npmrc applies
    deadlineMs: 120_000,
    signal,
  });
}

/** `npm` on the PATH is a link to `<npm>/bin/npm-cli.js`. */
async function copyInstalledNpm(npm: string, local: string, why: OffsiteError): Promise<void> {
  const folder = dirname(dirname(await realpath(npm)));
  try {
    await access(join(folder, 'bin/npx-cli.js'));
    const copy = join(local, 'lib/node_modules/npm');
    await cp(folder, copy, { recursive: true });
    for (const name of ['npm', 'npx']) {
      await chmod(join(copy, `bin/${name}-cli.js`), 0o755);
      await symlink(`../lib/node_modules/npm/bin/${name}-cli.js`, join(local, 'bin', name));
    }
  } catch (cause) {
    const copying = `Could not copy the host's npm from ${folder} either: ${messageOf(cause)}`;
    throw new OffsiteError(`${why.message}\n${copying}`, {
      code: 'BASE_IMAGE_NO_NPM',
      kind: 'infrastructure',
      cause: why,
    });
  }
}

/**
 * The binary that npm installed with Offsite; otherwise the one that runs this process, if its version
 * matches.
 */
async function nodeBinary(major: number): Promise<string> {
  const running = process.versions.node.startsWith(`${major}.`) ? [process.execPath] : [];
  for (const path of [...installedBinaries(), ...running]) if (await isThere(path)) return realpath(path);
  throw new OffsiteError(`The base image needs a Node ${major} binary, and there is none on this host.`, {
    code: 'BASE_IMAGE_NO_NODE',
    kind: 'infrastructure',
    hint: `Run Offsite under Node ${major}.`,
  });
}

/**
 * Node is an npm package that Offsite depends on; it may be missing if Offsite was installed in another way.
 */
function installedBinaries(): string[] {
  const { resolve } = createRequire(import.meta.url);
  return ['node', `node-${process.platform}-${process.arch}`].flatMap((name) => {
    try {
      return [join(dirname(resolve(`${name}/package.json`)), 'bin/node')];
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return [];
      throw error;
    }
  });
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
