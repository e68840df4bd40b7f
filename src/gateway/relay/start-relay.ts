import type { Engine } from '../../engine/engine.ts';
import { messageOf, OffsiteError } from '../../offsite-error.ts';
import type { Relay } from './relay.ts';
import { relayPort, type SidecarRequest, startSidecar } from './sidecar.ts';

/** How often a sidecar is made in all. One that dies takes the requests in flight with it; harnesses try those again. */
const maxSidecars = 3;

/**
 * Starts the relay of a sandbox, and starts it again when it dies. Returns at once; see {@link Relay.ready}. An abort of `signal` ends it as
 * disposing does, except that the latter waits for the removal.
 */
export function startRelay(engine: Engine, request: SidecarRequest, signal: AbortSignal): Relay {
  const disposed = new AbortController();
  const lost = new AbortController();
  const ready = Promise.withResolvers<void>();
  // Whoever never looks at it may still look at `lost`.
  ready.promise.catch(() => undefined);

  const ending = AbortSignal.any([signal, disposed.signal]);
  const finished = keepUp(engine, request, ready.resolve, ending).then(
    () => ready.reject(ending.reason),
    (error: unknown) => {
      ready.reject(error);
      lost.abort(error);
    },
  );
  return {
    origin: `http://127.0.0.1:${relayPort}`,
    ready: ready.promise,
    lost: lost.signal,
    async [Symbol.asyncDispose]() {
      disposed.abort(new Error('the relay is no longer needed'));
      await finished;
    },
  };
}

/** Resolves once `ending` aborted and nothing is left; throws when the last sidecar has died. */
async function keepUp(
  engine: Engine,
  request: SidecarRequest,
  onReady: () => void,
  ending: AbortSignal,
): Promise<void> {
  const aborted = Promise.withResolvers<'aborted'>();
  ending.addEventListener('abort', () => aborted.resolve('aborted'), { once: true });
  const deaths: string[] = [];
  while (!ending.aborted && deaths.length < maxSidecars) {
    try {
      await using sidecar = await startSidecar(engine, request, ending);
      onReady();
      deaths.push(await Promise.race([sidecar.ended, aborted.promise]));
    } catch (error) {
      if (ending.aborted) return;
      deaths.push(messageOf(error));
    }
  }
  if (ending.aborted) return;
  throw new OffsiteError(
    `The sandbox's relay to its model died ${maxSidecars} times: ${[...new Set(deaths)].join('; ')}`,
    {
      code: 'RELAY_LOST',
      kind: 'infrastructure',
      hint: 'See whether the engine is well (docker info) and has memory to spare.',
    },
  );
}
