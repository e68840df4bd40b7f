import { randomUUID } from 'node:crypto';
import type { Engine } from '../../src/engine/engine.ts';
import { dockerOf } from '../engine/docker-of.ts';

/** An image of a Dockerfile without other files. Removed when disposed of. */
export async function testImage(
  engine: Engine,
  dockerfile: string,
): Promise<AsyncDisposable & { name: string }> {
  const name = `offsite-test/${randomUUID()}:latest`;
  await engine.port.images.build({ dockerfile, name });
  return {
    name,
    // Containers and snapshots that were made of it may still be there: then only its name is removed.
    [Symbol.asyncDispose]: () => dockerOf(engine).getImage(name).remove({ force: true }),
  };
}
