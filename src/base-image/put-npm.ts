import { access, cp, mkdir, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { messageOf, OffsiteError } from '../offsite-error.ts';
import type { CaBundle } from './host-certificates.ts';
import { findHostProgram, runHostProgram, withSystemPath } from './host-program.ts';
import type { BaseImageRecipe } from './recipe.ts';

export interface NodePlacement {
  root: string;
  scratch: string;
  recipe: BaseImageRecipe;
  env: NodeJS.ProcessEnv;
  caBundle?: CaBundle;
  signal?: AbortSignal;
}

/** The pinned npm from its registry; where that can't be had, the copy that is installed on the host. */
export async function putNpm(placement: NodePlacement, target: string): Promise<void> {
  const { scratch, recipe, env, caBundle, signal } = placement;
  const npm = await findHostProgram('npm', env);
  if (npm === undefined) {
    throw new OffsiteError('The base image needs npm, and this host has none to fetch or copy it with.', {
      code: 'BASE_IMAGE_NO_NPM',
      kind: 'infrastructure',
      hint: 'Install npm.',
    });
  }
  try {
    await runHostProgram({
      command: npm,
      args: ['pack', `npm@${recipe.npmVersion}`, '--loglevel=error', '--pack-destination', scratch],
      purpose: `fetch npm ${recipe.npmVersion}`,
      env: withCertificates(withSystemPath(env), caBundle),
      cwd: scratch, // no project's .npmrc
      deadlineMs: 120_000,
      signal,
    });
    await mkdir(target);
    await runHostProgram({
      command: 'tar',
      args: [
        '-xzf',
        join(scratch, `npm-${recipe.npmVersion}.tgz`),
        '-C',
        target,
        '--strip-components=1',
        '--no-same-owner',
      ],
      purpose: 'unpack npm',
      env: withSystemPath(env),
      deadlineMs: 60_000,
      signal,
    });
  } catch (error) {
    if (!(error instanceof OffsiteError)) throw error;
    await copyInstalledNpm(npm, target, error);
  }
}

/** `npm` on the PATH is a link to `<npm>/bin/npm-cli.js`. */
async function copyInstalledNpm(npm: string, target: string, why: OffsiteError): Promise<void> {
  const folder = dirname(dirname(await realpath(npm)));
  try {
    await access(join(folder, 'bin/npx-cli.js'));
    await cp(folder, target, { recursive: true });
  } catch (cause) {
    const message = `${why.message}\nCould not copy the host's npm from ${folder} either: ${messageOf(cause)}`;
    throw new OffsiteError(message, { code: 'BASE_IMAGE_NO_NPM', kind: 'infrastructure', cause: why });
  }
}

function withCertificates(env: NodeJS.ProcessEnv, caBundle: CaBundle | undefined): NodeJS.ProcessEnv {
  if (caBundle === undefined) return env;
  return { ...env, npm_config_cafile: caBundle.path, NODE_EXTRA_CA_CERTS: caBundle.path };
}
