import { startDeadline } from '../../base/deadline.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { processEnds } from '../../bounds/sandbox.ts';
import type { EnginePort } from '../port/engine-port.ts';

/** Watches a container from before a start until it is disposed: one open request to the engine. */
export interface EndWatch extends Disposable {
  /**
   * Whether the container ended without a request to end it since its last start. False too if the engine was
   * not there all the time: an engine that stops ends its containers. Waits for the engine to note the end.
   */
  endedByItself(): Promise<boolean>;
  /** Resolves when the engine reports the end of the container's present run, or has done so already. */
  ended(): Promise<void>;
}

/** What the engine's events say about the container so far. */
interface Seen {
  isEnded: boolean;
  wasRequested: boolean;
}

export function watchEnd({ containers, clock }: EnginePort, id: string): EndWatch {
  const stop = new AbortController();
  const seen: Seen = { isEnded: false, wasRequested: false };
  let onEnd = Promise.withResolvers<void>();
  const follow = async () => {
    for await (const event of containers.events(id, stop.signal)) {
      if (event.kind === 'started') {
        // Otherwise somebody may wait for the end of this run already.
        if (seen.isEnded) onEnd = Promise.withResolvers();
        Object.assign(seen, { isEnded: false, wasRequested: false });
      } else if (event.kind === 'kill-requested') {
        seen.wasRequested = true;
      } else if (event.kind === 'ended') {
        seen.isEnded = true;
        onEnd.resolve();
      }
    }
  };
  let isWatched = true;
  const followed = follow()
    .catch((thrown: unknown) => {
      if (!(thrown instanceof OffsiteError)) throw thrown;
    })
    .finally(() => {
      isWatched = false;
    });
  followed.catch(() => undefined);
  return {
    async endedByItself() {
      using deadline = startDeadline(clock, processEnds.time.containerNoted);
      await Promise.race([onEnd.promise, followed, deadline.reached]);
      return isWatched && seen.isEnded && !seen.wasRequested;
    },
    ended: () => onEnd.promise,
    [Symbol.dispose]: () => stop.abort(),
  };
}
