import { randomUUID } from 'node:crypto';
import { OffsiteError } from '../../src/base/offsite-error.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { dockerOf } from '../engine/docker-of.ts';
import { until } from '../engine/engine-fixture.ts';

/** An image of a Dockerfile without other files. Removed when disposed of. */
export async function testImage(
  engine: Engine,
  dockerfile: string,
): Promise<AsyncDisposable & { name: string }> {
  const name = `offsite-test/${randomUUID()}:latest`;
  const build = () => engine.port.images.build({ dockerfile, name });
  // A test beside this one may remove an image with the same layers while this one is built.
  await build().catch((error: unknown) => {
    if (!(error instanceof OffsiteError) || error.code !== 'IMAGE_REMOVED') throw error;
    return build();
  });
  return {
    name,
    // Containers and snapshots that were made of it may still be there: then only its name is removed.
    [Symbol.asyncDispose]: () => until(() => isRemoved(engine, name)),
  };
}

/** Podman refuses while a container of the image is being removed. */
async function isRemoved(engine: Engine, name: string): Promise<boolean> {
  try {
    await dockerOf(engine).getImage(name).remove({ force: true });
    return true;
  } catch (error) {
    const { statusCode } = error as { statusCode?: number };
    if (statusCode === 404) return true;
    if (statusCode === 409 || statusCode === 500) return false;
    throw error;
  }
}
