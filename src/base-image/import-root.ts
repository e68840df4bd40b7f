import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { execa } from 'execa';
import type { EnginePort } from '../engine/port/engine-port.ts';
import { withSystemPath } from './host-program.ts';
import { type BaseImageRecipe, baseImageName, recipeHash, recipeLabel } from './recipe.ts';

export interface RootImport {
  engine: EnginePort;
  root: string;
  recipe: BaseImageRecipe;
  env: NodeJS.ProcessEnv;
  signal?: AbortSignal;
}

/** Streams a folder into the engine as an image of one layer, under the recipe's name and with its label. */
export async function importRoot({ engine, root, recipe, env, signal }: RootImport): Promise<void> {
  const tar = execa('tar', ['--create', '--numeric-owner', '--one-file-system', '--directory', root, '.'], {
    env: withSystemPath(env),
    stdin: 'ignore',
    buffer: { stdout: false },
    reject: false,
    cancelSignal: signal,
  });
  // The engine must not see a proper end of the stream unless tar's own end was proper.
  const archive = new PassThrough();
  const packed = (async () => {
    await pipeline(tar.stdout, archive, { end: false, signal });
    const result = await tar;
    if (result.failed) throw new Error(`tar failed: ${result.stderr}`, { cause: result });
    archive.end();
  })();
  packed.catch((error) => archive.destroy(error));
  try {
    await engine.images.import({
      root: archive,
      name: baseImageName(recipe),
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C.UTF-8' },
      command: ['bash'],
      labels: { [recipeLabel]: recipeHash(recipe) },
      signal,
    });
    await packed;
  } finally {
    tar.kill();
    archive.destroy();
  }
}
