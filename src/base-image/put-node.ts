import { access, chmod, copyFile, cp, mkdir, mkdtemp, realpath, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { messageOf, OffsiteError } from '../offsite-error.ts';
import type { CaBundle } from './host-certificates.ts';
import { findHostProgram, runHostProgram, withSystemPath } from './host-program.ts';
import { nodeBinary } from './node-binary.ts';
import { type BaseImageRecipe, glibcOf } from './recipe.ts';

export interface NodePlacement {
  /** The folder that becomes /usr/local. */
  local: string;
  recipe: BaseImageRecipe;
  env: NodeJS.ProcessEnv;
  log: (line: string) => void;
  caBundle?: CaBundle;
  signal?: AbortSignal;
}

/** Puts Node and npm there: the pinned npm from its registry or, if that fails, the host's own. */
export async function putNode(placement: NodePlacement): Promise<void> {
  const { local, recipe, env, log, signal } = placement;
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
  const { nodeMajor: major, debianSuite } = recipe;
  const folder = await mkdtemp(`${local}-node-`);
  const source = {
    major,
    glibc: glibcOf[debianSuite],
    folder,
    npm,
    env: withCertificates(placement),
    log,
    signal,
  };
  await copyFile(await nodeBinary(source), node);
  await rm(folder, { recursive: true });
  await chmod(node, 0o755);
  try {
    await fetchNpm(npm, placement);
  } catch (error) {
    if (!(error instanceof OffsiteError)) throw error;
    await copyInstalledNpm(npm, local, error);
  }
}

/** The environment in which npm trusts what this host trusts. */
function withCertificates({ env, caBundle }: NodePlacement): NodeJS.ProcessEnv {
  if (caBundle === undefined) return env;
  return { ...env, npm_config_cafile: caBundle.path, NODE_EXTRA_CA_CERTS: caBundle.path };
}

async function fetchNpm(npm: string, placement: NodePlacement): Promise<void> {
  const { local, recipe, signal } = placement;
  const name = `npm@${recipe.npmVersion}`;
  await runHostProgram({
    command: npm,
    args: ['install', '--global', '--prefix', local, '--loglevel=error', '--no-audit', '--no-fund', name],
    purpose: `fetch ${name}`,
    env: withSystemPath(withCertificates(placement)),
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
