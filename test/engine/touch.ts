import type { Engine } from '../../src/engine/engine.ts';
import { dockerOf } from './docker-of.ts';

/** Makes an empty file in a container, without waiting for it. Does nothing where the container has ended. */
export async function touch(engine: Engine, containerId: string, path: string): Promise<void> {
  try {
    const exec = await dockerOf(engine)
      .getContainer(containerId)
      .exec({ Cmd: ['touch', path] });
    await exec.start({ Detach: true });
  } catch (error) {
    const { statusCode, message } = error as { statusCode?: number; message: string };
    // Whoever runs the container may end it at any moment.
    const hasEnded = statusCode === 404 || statusCode === 409 || message.includes('container not running');
    if (!hasEnded) throw error;
  }
}
