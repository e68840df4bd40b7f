import { setTimeout as delay } from 'node:timers/promises';
import type { Engine } from '../../src/engine/engine.ts';
import { dockerOf } from './docker-of.ts';

/** Makes an empty file in a container, without waiting for it. Does nothing where the container has ended. */
export async function touch(engine: Engine, containerId: string, path: string): Promise<void> {
  const container = dockerOf(engine).getContainer(containerId);
  for (const end = Date.now() + 60_000; ; ) {
    try {
      const exec = await container.exec({ Cmd: ['touch', path] });
      return void (await exec.start({ Detach: true }));
    } catch (error) {
      // Whoever runs the container may end it at any moment. What an engine answers then depends on how much
      // of the end it has noted: for a while it takes a container whose first process is gone for a running
      // one.
      if (!(await isRunning(container))) return;
      if (Date.now() > end) throw error;
      await delay(50);
    }
  }
}

async function isRunning(
  container: ReturnType<ReturnType<typeof dockerOf>['getContainer']>,
): Promise<boolean> {
  try {
    return (await container.inspect()).State.Running;
  } catch (error) {
    if ((error as { statusCode?: number }).statusCode === 404) return false;
    throw error;
  }
}
