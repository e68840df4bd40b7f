import { OffsiteError } from '../../base/offsite-error.ts';
import { processEnds } from '../../bounds/sandbox.ts';
import { isNotedAsEnded, type RunningContainer } from '../container/running-container.ts';
import type { OpenedExec } from '../port/containers.ts';
import { engineFailure, execLost, isEngineFailure } from '../port/failure.ts';
import { killedExitCode } from './exit-code.ts';
import { runQuietly } from './run-quietly.ts';

/** What gVisor reports of a command whose container has ended. */
const withoutContainerExitCode = 128;

/**
 * Throws if a command ended together with its whole container: its exit code is not its own then. An engine
 * that stops kills its containers, and their commands end with 137, like a command that was killed inside.
 * Costs requests only after such an exit code.
 */
export async function assertContainerOutlived(container: RunningContainer, exitCode: number): Promise<void> {
  const isSuspicious =
    exitCode === killedExitCode || (container.canEndItself && exitCode === withoutContainerExitCode);
  if (isSuspicious && (await hasEnded(container)))
    throw execLost('The container was stopped while a command ran in it.');
}

/**
 * Throws if a command was not started because its container had ended. Once the engine has noted the end, it
 * refuses commands with the same failure. Until then it passes on the message of its runtime, which reads as
 * if the command could not be run. Costs requests only after such a failure; `message` is what the engine
 * said.
 */
export async function assertContainerRuns(container: RunningContainer, message: string): Promise<void> {
  if (!(await hasEnded(container))) return;
  const stopped = `The container stopped before a command started in it: ${message}`;
  throw engineFailure('conflict', stopped, undefined);
}

/**
 * If it cannot run anything, it has ended, even if the engine did not notice that yet, or it has no shell.
 */
async function hasEnded(container: RunningContainer): Promise<boolean> {
  try {
    if ((await runQuietly(container, 'echo alive')).startsWith('alive')) return false;
  } catch (thrown) {
    if (!(thrown instanceof OffsiteError) || isEngineFailure(thrown, 'connection')) throw thrown;
  }
  return isNotedAsEnded(container);
}

/** Watches for the end of a container while a command runs in it. */
interface LossWatch extends Disposable {
  /**
   * Rejects if the container has ended and the command has had a moment to end too, or if the engine does not
   * say whether it has. After disposal it means nothing.
   */
  readonly lost: Promise<never>;
  /**
   * What `opening` resolves with. If the container is lost first, this rejects, and closes what opens later.
   */
  opened(opening: Promise<OpenedExec>): Promise<OpenedExec>;
}

/** Docker 20.10 with gVisor may never end the stream of a command whose container has ended. */
export function watchLoss(container: RunningContainer): LossWatch {
  const { canEndItself, port, id, restarts } = container;
  const { promise: lost, reject } = Promise.withResolvers<never>();
  lost.catch(() => undefined);
  const stop = new AbortController();
  const watch = async () => {
    do await port.clock.sleep(processEnds.time.lossLook, stop.signal);
    while (container.restarts === restarts && (await port.containers.state(id, stop.signal)).isRunning);
    await port.clock.sleep(processEnds.time.containerNoted, stop.signal);
    throw execLost('The container ended while a command ran in it.');
  };
  if (canEndItself) watch().catch(reject);
  return {
    lost,
    async opened(opening) {
      try {
        return await Promise.race([opening, lost]);
      } catch (thrown) {
        const close = (late: OpenedExec) => late.started && late.exec[Symbol.dispose]();
        opening.then(close, () => undefined);
        throw thrown;
      }
    },
    [Symbol.dispose]: () => stop.abort(),
  };
}
