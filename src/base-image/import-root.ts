import { PassThrough, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type Docker from 'dockerode';
import { execa } from 'execa';
import { OffsiteError } from '../offsite-error.ts';
import { engineLines } from './engine-lines.ts';
import { withSystemPath } from './host-program.ts';
import { type BaseImageRecipe, recipeHash, recipeLabel } from './recipe.ts';

export interface RootImport {
  docker: Docker;
  root: string;
  recipe: BaseImageRecipe;
  env: NodeJS.ProcessEnv;
  signal?: AbortSignal;
}

/** How long the engine may be silent: it answers once, when all is imported. */
const silenceMs = 600_000;

/** Streams a folder into the engine as an image of one layer, under the recipe's name and with its label. */
export async function importRoot({ docker, root, recipe, env, signal }: RootImport): Promise<void> {
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
  const purpose = `import ${root} as an image`;
  try {
    const answer = (await docker.importImage(archive, {
      repo: recipe.repository,
      tag: recipeHash(recipe),
      changes: [
        'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
        'ENV LANG=C.UTF-8',
        'CMD ["bash"]',
        `LABEL ${recipeLabel}=${recipeHash(recipe)}`,
      ],
      abortSignal: signal,
    })) as Readable;
    for await (const _ of engineLines(answer, { purpose, silenceMs, signal })) {
      // One line: the new image's id. The caller inspects the image by its name.
    }
    await packed;
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof OffsiteError) throw error;
    throw new OffsiteError(`Could not ${purpose}.`, {
      code: 'IMAGE_FAILED',
      kind: 'infrastructure',
      cause: error,
    });
  } finally {
    tar.kill();
    archive.destroy();
  }
}
