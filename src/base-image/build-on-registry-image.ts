import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { pack } from 'tar-stream';
import { OffsiteError } from '../offsite-error.ts';
import { engineLines } from './engine-lines.ts';
import { type BaseImageRecipe, baseImageName, recipeHash, recipeLabel } from './recipe.ts';

export interface RegistryBuild {
  docker: Docker;
  recipe: BaseImageRecipe;
  signal?: AbortSignal;
}

/** How long a build step may print nothing, in milliseconds. */
const silenceMs = 300_000;

export function dockerfileOf(recipe: BaseImageRecipe): string {
  return [
    `FROM ${recipe.registryImage}`,
    'RUN apt-get update \\',
    ` && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ${recipe.debianPackages.join(' ')} \\`,
    ' && rm -rf /var/lib/apt/lists/*',
    'ENV LANG=C.UTF-8',
    // The parent's entrypoint runs unknown words as scripts; a sandbox runs exactly what it is given.
    'ENTRYPOINT []',
    'CMD ["bash"]',
    `LABEL ${recipeLabel}="${recipeHash(recipe)}"`,
    '',
  ].join('\n');
}

/**
 * Builds the recipe's image upon the registry's, which the engine already has, and tags it with its name. Leaves
 * no intermediate container behind. Throws an infrastructure `OffsiteError` with the line that failed.
 */
export async function buildOnRegistryImage({ docker, recipe, signal }: RegistryBuild): Promise<void> {
  const name = baseImageName(recipe);
  const purpose = `build ${name} on ${recipe.registryImage}`;
  const context = pack();
  context.entry({ name: 'Dockerfile' }, dockerfileOf(recipe));
  context.finalize();
  // Typed as the old kind of stream; it is the HTTP answer.
  const answer = (await docker.buildImage(context as unknown as Readable, {
    t: name,
    rm: true,
    forcerm: true,
    abortSignal: signal,
  })) as Readable;
  let succeeded = false;
  for await (const line of engineLines(answer, { purpose, silenceMs, signal })) {
    if (line.aux?.ID !== undefined || line.stream?.startsWith('Successfully built')) succeeded = true;
  }
  if (!succeeded) {
    throw new OffsiteError(`Could not ${purpose}: the engine's answer ended before the build did.`, {
      code: 'IMAGE_FAILED',
      kind: 'infrastructure',
    });
  }
}
