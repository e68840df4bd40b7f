import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findHostProgram, runHostProgram, withSystemPath } from '../base/host-program.ts';
import { OffsiteError } from '../base/offsite-error.ts';
import type { BaseImageRecipe } from './recipe.ts';

export interface NodeFetch {
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
    throw new OffsiteError('The base image needs npm, and this host has no npm to fetch it with.', {
      code: 'BASE_IMAGE_NO_NPM',
      kind: 'infrastructure',
      hint: 'Install npm.',
    });
  }
  const integrity = recipe.node.integrity[arch];
  const locked = {
    [`node-linux-${arch}`]: { version: recipe.node.version, integrity },
    npm: recipe.npm,
  };
  const dependencies = Object.fromEntries(
    Object.entries(locked).map(([name, { version }]) => [name, version]),
  );
  const packages = Object.fromEntries(
    Object.entries(locked).map(([name, entry]) => [`node_modules/${name}`, entry]),
  );
  const lock = { lockfileVersion: 3, requires: true, packages: { '': { dependencies }, ...packages } };
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
