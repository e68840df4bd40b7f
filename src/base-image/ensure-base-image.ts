import { systemClock } from '../clock.ts';
import type { EnginePort } from '../engine/port/engine-port.ts';
import { OffsiteError } from '../offsite-error.ts';
import { buildFromDebian } from './build-from-debian.ts';
import { dockerfileOf } from './dockerfile.ts';
import type { CaBundle } from './host-certificates.ts';
import { type During, progressLines } from './progress.ts';
import { type BaseImageRecipe, baseImageName, baseImageRecipe } from './recipe.ts';

export interface BaseImageOptions {
  engine: EnginePort;
  /** Gets one plain line for whatever a user would want to know. */
  log: (line: string) => void;
  /** Trusted when fetching npm; never put into the image. */
  caBundle?: CaBundle;
  signal?: AbortSignal;
  /** Build anew although the image is there. */
  force?: boolean;
  /** How long steps are shown; lines through `log` unless given. */
  during?: During;
  recipe?: BaseImageRecipe;
  env?: NodeJS.ProcessEnv;
}

export interface BaseImage {
  /** The engine's image id, `sha256:...`. */
  id: string;
  /** `offsite/base:<recipe hash>`; `offsite/base:latest` is the same image. */
  name: string;
  built: 'already there' | 'pulled' | 'from Debian packages';
}

/**
 * Makes sure that the engine has the base image of this version's recipe, by the first way that works: it is
 * there; a registry's Node image, with our packages on top; Debian packages on this host. Throws an
 * infrastructure `OffsiteError` that gives the reason of each when none does.
 */
export async function ensureBaseImage(options: BaseImageOptions): Promise<BaseImage> {
  const { engine, signal, force = false, recipe = baseImageRecipe } = options;
  const name = baseImageName(recipe);
  const present = force ? undefined : await imageId(engine, name, signal);
  const built = present === undefined ? await build(options, recipe) : 'already there';
  const id = present ?? (await imageId(engine, name, signal));
  if (id === undefined) {
    const message = `The engine said that it built ${name}, and does not have it.`;
    throw new OffsiteError(message, { code: 'IMAGE_FAILED', kind: 'infrastructure' });
  }
  if ((await imageId(engine, `${recipe.repository}:latest`, signal)) !== id) {
    await engine.images.tag(name, `${recipe.repository}:latest`, signal);
  }
  return { id, name, built };
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
    await during(`Building ${name} on it`, () =>
      engine.images.build({ dockerfile: dockerfileOf(recipe), name, signal }),
    );
    return 'pulled';
  } catch (error) {
    signal?.throwIfAborted();
    if (!(error instanceof OffsiteError)) throw error;
    log(error.message.split('\n')[0] ?? error.message);
    log('Making it from Debian packages instead.');
    await buildFromDebian({ engine, recipe, log, during, caBundle, env, signal, registryError: error });
    return 'from Debian packages';
  }
}

/** A registry that does not answer is no obstacle when its image was pulled before. */
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
