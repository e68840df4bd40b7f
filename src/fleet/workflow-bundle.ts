import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { hashOf } from './storage/storage.ts';

const sources = new URL('./workflow/', import.meta.url);

/** The name of the bundle in the package, beside the compiled sources. */
export const bundleName = 'workflow-bundle.cjs';

/**
 * The file with the bundled workflows. The package contains it. A checkout bundles its sources, once, into a
 * folder beside its packages.
 */
export async function workflowBundle(): Promise<string> {
  const shipped = fileURLToPath(new URL(bundleName, import.meta.url));
  if (existsSync(shipped)) return shipped;
  const own = (await readdir(sources)).filter((name) => name.endsWith('.ts')).toSorted();
  const others = [
    '../../agent/daemon/poll-targets.ts',
    '../../bounds/channel.ts',
    '../../bounds/fleet.ts',
    '../workflow-bundle.ts',
  ];
  const names = [...own, ...others];
  const texts = await Promise.all(names.map((name) => readFile(new URL(name, sources), 'utf8')));
  const { version } = await packageOf('@temporalio/worker');
  const hash = hashOf(JSON.stringify([version, names, texts])).slice(0, 16);
  const cache = fileURLToPath(new URL('../../node_modules/.cache/offsite/', import.meta.url));
  const file = join(cache, `workflows-${hash}.cjs`);
  if (existsSync(file)) return file;
  await mkdir(dirname(file), { recursive: true });
  // Several workers may start at the same time.
  const partial = `${file}.${process.pid}.partial`;
  await writeFile(partial, await bundleWorkflows());
  await rename(partial, file);
  return file;
}

/** In two parts, so that no tool takes it for the map of this file. */
const mapComment = `//# source${'MappingURL'}`;
/** A worker wants a map in the bundle, for debuggers. */
const emptyMap = `${mapComment}=data:application/json;base64,${Buffer.from(
  JSON.stringify({ version: 3, file: bundleName, sources: [], names: [], mappings: '' }),
).toString('base64')}`;

/** Bundles the workflows from their sources, which only a checkout has. */
export async function bundleWorkflows(): Promise<string> {
  const { bundleWorkflowCode } = await import('@temporalio/worker');
  const silent = () => undefined;
  const { code } = await bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('index.ts', sources)),
    // With its map, the bundle would be larger than all else in the package.
    webpackConfigHook: (config) => ({
      ...config,
      devtool: false,
      optimization: { ...config.optimization, minimize: true },
    }),
    logger: { log: silent, trace: silent, debug: silent, info: silent, warn: silent, error: silent },
  });
  return `${code}\n${emptyMap}\n`;
}

async function packageOf(name: string): Promise<{ version: string }> {
  return (await import(`${name}/package.json`, { with: { type: 'json' } })).default;
}
