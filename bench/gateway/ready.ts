import { systemClock } from '../../src/clock.ts';
import type { ContainerSpec } from '../../src/engine/container/container-spec.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { startRelay } from '../../src/gateway/relay/start-relay.ts';

/** Milliseconds from the order to start a created sandbox. */
export interface ReadyTimes {
  sandboxStartedMs: number;
  relayReadyMs: number;
}

/** Starts one sandbox with its relay beside it, and removes both. */
export async function startOnce(engine: Engine, spec: ContainerSpec): Promise<ReadyTimes> {
  await using sandbox = await engine.createContainer(spec);
  const startedAt = performance.now();
  const sandboxStarted = sandbox.start();
  await using relay = startRelay(
    engine,
    {
      sandbox,
      sandboxStarted,
      image: spec.imageId,
      handler: (stream) => stream.close(),
      labels: {},
      clock: systemClock,
    },
    AbortSignal.timeout(60_000),
  );
  await sandboxStarted;
  const sandboxStartedMs = performance.now() - startedAt;
  await relay.ready;
  return { sandboxStartedMs, relayReadyMs: performance.now() - startedAt };
}
