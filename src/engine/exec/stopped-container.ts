import { processEnds } from '../../bounds/sandbox.ts';
import { OffsiteError } from '../../offsite-error.ts';
import type { RunningContainer } from '../container/running-container.ts';
import { execLost, isEngineFailure } from '../port/failure.ts';
import { oomEventSince } from './oom-events.ts';
import { runQuietly } from './run-quietly.ts';

/** 128 + SIGKILL. */
const KILLED = 137;
const POLL_MS = 100;

/**
 * Throws where a command that was killed went down with its whole container: an engine that is being stopped
 * kills containers, and what ran in them ends with 137 like something that was killed inside. No process
 * inside can kill our init. But the kernel can, for memory that the container's own files in /dev/shm hold;
 * that is the command's doing and its result. Costs nothing but after a 137.
 */
export async function assertContainerOutlived(
  container: RunningContainer,
  exec: { id: string },
  exitCode: number,
): Promise<void> {
  if (exitCode !== KILLED || (await answers(container))) return;
  // It cannot run anything: it has ended, or what ran in it removed its shell.
  const { clock, containers } = container.port;
  for (
    const until = clock.now() + processEnds.time.containerNoted;
    (await containers.state(container.id)).isRunning;
    await clock.sleep(POLL_MS)
  ) {
    if (clock.now() > until) return;
  }
  if (await oomEventSince(container, exec.id)) return;
  throw execLost('The container was stopped from outside while a command ran in it.');
}

/** A process can only be put into a container whose init lives, whatever the engine knows already. */
async function answers(container: RunningContainer): Promise<boolean> {
  try {
    return (await runQuietly(container, 'echo alive')).startsWith('alive');
  } catch (thrown) {
    if (thrown instanceof OffsiteError && !isEngineFailure(thrown, 'connection')) return false;
    throw thrown;
  }
}
