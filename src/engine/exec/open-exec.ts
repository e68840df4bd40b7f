import { messageOf } from '../../offsite-error.ts';
import { isNotedAsEnded } from '../container/noted-end.ts';
import type { RunningContainer } from '../container/running-container.ts';
import { containerDamaged } from '../failure.ts';
import type { ExecCommand, OpenedExec } from '../port/exec.ts';
import { engineFailure } from '../port/failure.ts';

/** Starts a command in a container. Throws {@link containerEnded} if the container does not run. */
export async function openExec(container: RunningContainer, command: ExecCommand): Promise<OpenedExec> {
  try {
    return await container.port.containers.exec(container.id, command);
  } catch (thrown) {
    if (!container.wasRestarted || !(await isNotedAsEnded(container))) throw thrown;
    throw containerEnded(container, messageOf(thrown), thrown);
  }
}

/**
 * The failure of a command whose container has ended: `ENGINE_CONTAINER_STOPPED`, because no process inside
 * can end init. But a restart begins with the shell that these processes may have replaced. So after one it
 * is `ENGINE_CONTAINER_DAMAGED`.
 */
export function containerEnded(container: RunningContainer, message: string, cause?: unknown) {
  if (!container.wasRestarted) return engineFailure('conflict', message, cause);
  return containerDamaged(`After its restart the container has ended by itself: ${message}`, cause);
}
