import type { IncomingMessage } from 'node:http';
import type { Engine } from '../../src/engine/engine.ts';
import { dockerOf } from './docker-of.ts';

/** Whether there is this file in a container. False where the container has ended, or is just ending. */
export async function hasFile(engine: Engine, containerId: string, path: string): Promise<boolean> {
  try {
    const answer: unknown = await dockerOf(engine).getContainer(containerId).infoArchive({ path });
    (answer as IncomingMessage).resume();
    return true;
  } catch (error) {
    const { statusCode = 0 } = error as { statusCode?: number };
    // An engine that looks into a container while it is taken apart fails with 500.
    if (![404, 409, 500].includes(statusCode)) throw error;
    return false;
  }
}
