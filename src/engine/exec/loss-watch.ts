import { processEnds } from '../../bounds/sandbox.ts';
import type { RunningContainer } from '../container/running-container.ts';
import type { OpenedExec } from '../port/exec.ts';
import { execLost } from '../port/failure.ts';

/** Watches for the end of a container while a command runs in it. */
export interface LossWatch extends Disposable {
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

/**
 * Docker 20.10 with gVisor may never end the stream of a command whose container has ended. Without the
 * engine's events this watches nothing.
 */
export function watchLoss(container: RunningContainer): LossWatch {
  const { ends, port, id, restarts } = container;
  const { promise: lost, reject } = Promise.withResolvers<never>();
  lost.catch(() => undefined);
  const stop = new AbortController();
  const watch = async (watched: NonNullable<typeof ends>) => {
    do {
      await watched.ended();
      await port.clock.sleep(processEnds.time.containerNoted, stop.signal);
      // The event of the start before this command may be on its way.
    } while (container.restarts === restarts && (await port.containers.state(id, stop.signal)).isRunning);
    throw execLost('The container ended while a command ran in it.');
  };
  if (ends) watch(ends).catch(reject);
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
