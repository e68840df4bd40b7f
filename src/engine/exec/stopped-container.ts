import { processEnds } from '../../bounds/sandbox.ts';
import { OffsiteError } from '../../offsite-error.ts';
import type { RunningContainer } from '../container/running-container.ts';
import { execLost, isEngineFailure } from '../port/failure.ts';
import { oomEventSince } from './oom-events.ts';
import { runQuietly } from './run-quietly.ts';

/** 128 + SIGKILL. */
const killedExitCode = 137;
const pollMs = 100;

/**
 * Throws if a killed command ended together with its whole container. An engine that stops kills its
 * containers, and their commands end with 137, like a command that was killed inside. No process inside can
 * kill init. But the kernel can, because of memory that files in /dev/shm hold; that is the command's own
 * result. Costs a request only after a 137.
 */
export async function assertContainerOutlived(
  container: RunningContainer,
  exec: { id: string },
  exitCode: number,
): Promise<void> {
  if (exitCode !== killedExitCode || (await answers(container))) return;
  // The container cannot run anything: it has ended, or a command removed its shell.
  const { clock, containers } = container.port;
  for (
    const until = clock.now() + processEnds.time.containerNoted;
    (await containers.state(container.id)).isRunning;
    await clock.sleep(pollMs)
  ) {
    if (clock.now() > until) return;
  }
  if (await oomEventSince(container, exec.id)) return;
  throw execLost('The container was stopped from outside while a command ran in it.');
}

/**
 * A process can start only in a container whose init lives, even if the engine did not notice its end yet.
 */
async function answers(container: RunningContainer): Promise<boolean> {
  try {
    return (await runQuietly(container, 'echo alive')).startsWith('alive');
  } catch (thrown) {
    if (thrown instanceof OffsiteError && !isEngineFailure(thrown, 'connection')) return false;
    throw thrown;
  }
}
