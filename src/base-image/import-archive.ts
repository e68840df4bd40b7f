import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { execa } from 'execa';
import type { EnginePort } from '../engine/port/engine-port.ts';
import { OffsiteError } from '../offsite-error.ts';
import { withSystemPath } from './host-program.ts';
import { type BaseImageRecipe, baseImageName, recipeHash, recipeLabel } from './recipe.ts';

export interface ArchiveImport {
  engine: EnginePort;
  recipe: BaseImageRecipe;
  /** The program whose output is a tar archive of a whole root. */
  command: readonly string[];
  env: NodeJS.ProcessEnv;
  signal?: AbortSignal;
}

const deadlineMs = 900_000;
const shownLines = 15;

/**
 * Streams a program's output into the engine as an image of one layer, with the recipe's name and label.
 * Returns what the program printed on its standard error. If the program fails, throws an infrastructure
 * `OffsiteError` with the end of that output, and leaves no image.
 */
export async function importArchive(request: ArchiveImport): Promise<string> {
  const { engine, recipe, command, env, signal } = request;
  const [name = '', ...args] = command;
  const program = execa(name, args, {
    env: withSystemPath(env),
    extendEnv: false,
    stdin: 'ignore',
    buffer: { stdout: false },
    reject: false,
    cancelSignal: signal,
    timeout: deadlineMs,
  });
  // The engine must see a proper end of the stream only if the program succeeded.
  const root = new PassThrough();
  let failure: OffsiteError | undefined;
  const printed = (async () => {
    await pipeline(program.stdout, root, { end: false, signal });
    const result = await program;
    if (result.failed) {
      const tail = result.stderr.trimEnd().split('\n').slice(-shownLines).join('\n');
      failure = importFailure(`${name} failed.\n${tail}`, result);
      throw failure;
    }
    root.end();
    return result.stderr;
  })();
  printed.catch((error) => root.destroy(error));
  try {
    await engine.images.import({
      root,
      name: baseImageName(recipe),
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C.UTF-8' },
      command: ['bash'],
      labels: { [recipeLabel]: recipeHash(recipe) },
      signal,
    });
    return await printed;
  } catch (error) {
    signal?.throwIfAborted();
    throw failure ?? error;
  } finally {
    root.destroy();
    program.kill();
    // Before the program ends, it removes what it unpacked.
    await program;
  }
}

function importFailure(why: string, cause: unknown): OffsiteError {
  return new OffsiteError(`Could not import an image: ${why}`, {
    code: 'IMAGE_FAILED',
    kind: 'infrastructure',
    hint: 'Set OFFSITE_DEBIAN_MIRROR to use another mirror.',
    cause,
  });
}
