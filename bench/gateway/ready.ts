import { systemClock } from '../../src/base/clock.ts';
import type { ContainerSpec } from '../../src/engine/container/container-spec.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { RelayHandler } from '../../src/gateway/relay/relay.ts';
import { startRelay } from '../../src/gateway/relay/start-relay.ts';

/** Milliseconds from the request to make a sandbox. */
export interface ReadyTimes {
  /** For a sandbox without a relay. */
  sandboxAloneMs: number;
  /** For a sandbox with a relay, and for its relay to be ready. */
  sandboxStartedMs: number;
  relayReadyMs: number;
}

/** Gets no requests. */
const nobody: RelayHandler = {
  request: (_request, response) => response.destroy(),
  connect: (_request, client) => client.destroy(),
};

/** Makes and starts a sandbox alone, then one with a relay, and removes everything. */
export async function startOnce(engine: Engine, spec: ContainerSpec): Promise<ReadyTimes> {
  return { ...(await startAlone(engine, spec)), ...(await startWithRelay(engine, spec)) };
}

async function startAlone(engine: Engine, spec: ContainerSpec) {
  const passed = stopwatch();
  await using sandbox = await engine.createContainer(spec);
  await sandbox.start();
  return { sandboxAloneMs: passed() };
}

async function startWithRelay(engine: Engine, spec: ContainerSpec) {
  const signal = AbortSignal.timeout(60_000);
  const { network, imageId: image } = spec;
  const passed = stopwatch();
  await using relay = startRelay(
    engine,
    { network, image, handler: nobody, labels: {}, clock: systemClock },
    signal,
  );
  const relayReady = relay.ready.then(passed);
  await using _sandbox = await relay.startSandbox(
    (shared) => engine.createContainer({ ...spec, network: shared }),
    signal,
  );
  const sandboxStartedMs = passed();
  return { sandboxStartedMs, relayReadyMs: await relayReady };
}

function stopwatch(): () => number {
  const startedAt = performance.now();
  return () => performance.now() - startedAt;
}
