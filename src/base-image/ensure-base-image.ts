import { systemClock } from '../base/clock.ts';
import { infrastructureError, OffsiteError } from '../base/offsite-error.ts';
import { type During, progressLines } from '../base/progress.ts';
import type { EnginePort } from '../engine/port/engine-port.ts';
import { buildFromDebian } from './build-from-debian.ts';
import {
  type BaseImageRecipe,
  baseImageName,
  baseImageRecipe,
  pipInstall,
  recipeHash,
  recipeLabel,
  warnWithoutUv,
  withoutUv,
} from './recipe.ts';

export interface BaseImageOptions {
  engine: EnginePort;
  /** Receives one plain line for everything that the user may want to know. */
  log: (line: string) => void;
  /** A PEM file of authorities that are trusted when fetching packages; never put into the image. */
  caBundle?: string | undefined;
  signal?: AbortSignal;
  /** Build again even if the image exists. */
  force?: boolean;
  /** Shows long steps; default: lines through `log`. */
  during?: During;
  recipe?: BaseImageRecipe;
  env?: NodeJS.ProcessEnv;
}

export interface BaseImage {
  /** The engine's image id, `sha256:...`. */
  id: string;
  /** `offsite/base:<recipe hash>`. */
  name: string;
  /** The same image: `offsite/base:latest`. */
  alias: string;
  built: 'already there' | 'from an image of Node' | 'from Debian packages';
}

/**
 * Makes sure that the engine has the base image of this version's recipe. Uses the first way that works: the
 * image exists; a registry's Node image plus Offsite's packages; Debian packages on this host. If none works,
 * throws an infrastructure `OffsiteError` with the reason for each.
 */
export async function ensureBaseImage(options: BaseImageOptions): Promise<BaseImage> {
  const { engine, signal, force = false, recipe = baseImageRecipe } = options;
  const name = baseImageName(recipe);
  const present = force ? undefined : await imageId(engine, name, signal);
  const built = present === undefined ? await build(options, recipe) : 'already there';
  const id = present ?? (await imageId(engine, name, signal));
  if (id === undefined) {
    const message = `The engine reported that it built ${name}, but does not have it.`;
    throw infrastructureError('IMAGE_FAILED', message);
  }
  const alias = `${recipe.repository}:${recipe.tag}`;
  if ((await imageId(engine, alias, signal)) !== id) await engine.images.tag(name, alias, signal);
  return { id, name, alias, built };
}

async function build(options: BaseImageOptions, recipe: BaseImageRecipe): Promise<BaseImage['built']> {
  const { engine, log, caBundle, signal, force, env = process.env } = options;
  const { during = progressLines(log, systemClock) } = options;
  const name = baseImageName(recipe);
  log(
    `${force ? 'Making' : 'There is no base image of this version yet; making'} ${name}. This is done once.`,
  );
  try {
    await during(`Pulling ${recipe.registryImage}`, () =>
      pullUnlessThere(engine, recipe.registryImage, signal),
    );
    let printed = '';
    const onOutput = (text: string) => {
      printed += text;
    };
    await during(`Building ${name} on it`, () =>
      engine.images.build({ dockerfile: dockerfileOf(recipe), name, onOutput, signal }),
    );
    warnWithoutUv(printed, log);
    return 'from an image of Node';
  } catch (error) {
    signal?.throwIfAborted();
    if (!(error instanceof OffsiteError)) throw error;
    log(error.message.split('\n')[0] ?? error.message);
    log('Making it from Debian packages instead.');
    await buildFromDebian({ engine, recipe, log, during, caBundle, env, signal, registryError: error });
    return 'from Debian packages';
  }
}

/** A registry that does not answer does not matter if its image was pulled before. */
async function pullUnlessThere(engine: EnginePort, name: string, signal?: AbortSignal): Promise<void> {
  try {
    await engine.images.pull(name, { signal });
  } catch (error) {
    if (signal?.aborted || (await imageId(engine, name, signal)) === undefined) throw error;
  }
}

async function imageId(engine: EnginePort, name: string, signal?: AbortSignal): Promise<string | undefined> {
  return (await engine.images.find(name, signal))?.id;
}

/** Builds the recipe's image on the registry's image, which the engine already has. */
export function dockerfileOf(recipe: BaseImageRecipe): string {
  const packages = recipe.debianPackages.join(' ');
  return [
    `FROM ${recipe.registryImage}`,
    'RUN apt-get update \\',
    ` && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ${packages} \\`,
    // Without EXTERNALLY-MANAGED, pip may install into the system, as in the official images of Python.
    ' && rm -rf /var/lib/apt/lists/* /usr/lib/python3*/EXTERNALLY-MANAGED',
    `RUN echo "${recipe.uv}" > /tmp/uv.txt; pip ${pipInstall} -r /tmp/uv.txt || echo "${withoutUv}"; rm /tmp/uv.txt`,
    'ENV LANG=C.UTF-8',
    // The parent's entrypoint passes an unknown command to Node; a sandbox runs exactly what it is given.
    'ENTRYPOINT []',
    'CMD ["bash"]',
    `LABEL ${recipeLabel}="${recipeHash(recipe)}"`,
    '',
  ].join('\n');
}
