import { abortable } from '../../base/deadline.ts';
import { infrastructureError, inputError, messageOf, type OffsiteError } from '../../base/offsite-error.ts';
import { relayTraffic } from '../../bounds/sandbox.ts';
import type { ContainerSpec } from '../../engine/container/container-spec.ts';
import type { Container } from '../../engine/container.ts';
import type { Engine } from '../../engine/engine.ts';
import { type Relay, relayPort } from './relay.ts';
import { beginSidecar, type Sidecar, type SidecarRequest } from './sidecar.ts';

/**
 * Starts the relay of a sandbox, and restarts it if it dies. Returns at once; see {@link Relay.ready}. An
 * abort of `signal` ends it as disposing does, but disposing also waits for the removal.
 *
 * A relay takes longer to start than a sandbox. So the relay's container is created first, and the sandbox is
 * created in its network: both start at the same time. A relay that dies later is replaced in the same
 * network, which the sandbox now holds.
 */
export function startRelay(engine: Engine, request: SidecarRequest, signal: AbortSignal): Relay {
  const disposed = new AbortController();
  const lost = new AbortController();
  const ending = AbortSignal.any([signal, disposed.signal]);
  const first = Promise.withResolvers<Sidecar>();
  const ready = Promise.withResolvers<void>();
  // A caller may use only `lost`.
  for (const { promise } of [first, ready]) promise.catch(() => undefined);
  let { network } = request;

  const keepUp = async () => {
    const deaths: string[] = [];
    do {
      try {
        await using sidecar = await beginSidecar(engine, { ...request, network }, ending);
        first.resolve(sidecar);
        await sidecar.listening;
        ready.resolve();
        deaths.push(await abortable(sidecar.ended, ending));
      } catch (error) {
        deaths.push(messageOf(error));
      }
    } while (!ending.aborted && outlivesRelay(network) && deaths.length < relayTraffic.count.relays);
    throw ending.aborted ? ending.reason : relayDied(deaths);
  };
  const finished = keepUp().catch((error: unknown) => {
    first.reject(error);
    ready.reject(error);
    if (!ending.aborted) lost.abort(error);
  });
  return {
    origin: `http://127.0.0.1:${relayPort}`,
    ready: ready.promise,
    lost: lost.signal,
    async startSandbox(make, starting) {
      const sidecar = await first.promise;
      let sandbox = await make({ sharedWith: sidecar.id });
      try {
        const id = await sidecar.started;
        if (id !== sidecar.id) {
          await sandbox[Symbol.asyncDispose]();
          sandbox = await make({ sharedWith: id });
        }
        await sandbox.start(starting);
        if (!sandbox.listsProcesses) {
          await sidecar.listening;
          await requireReach(sandbox, starting);
        }
      } catch (error) {
        await sandbox[Symbol.asyncDispose]();
        // Without the relay the engine reports only that there is no such network.
        lost.signal.throwIfAborted();
        throw error;
      }
      network = { sharedWith: sandbox.id };
      return sandbox;
    },
    async [Symbol.asyncDispose]() {
      disposed.abort(new Error('the relay is no longer needed'));
      await finished;
    },
  };
}

/**
 * Checks that the sandbox reaches the relay: a sandbox with its own kernel, whose processes the engine cannot
 * list, may also have its own loopback. Throws `RELAY_OUT_OF_REACH`, an `input` error. Without bash, this
 * passes, and the harness fails if it cannot reach the relay.
 */
async function requireReach(sandbox: Container, signal: AbortSignal): Promise<void> {
  const { ended, exitCode } = await sandbox.exec({
    argv: ['bash', '-c', `exec 3<> /dev/tcp/127.0.0.1/${relayPort}`],
    cwd: '/',
    timeoutMs: relayTraffic.time.relayStart,
    signal,
  });
  if (ended !== 'exited' || exitCode !== 1) return;
  throw inputError(
    'RELAY_OUT_OF_REACH',
    'The runtime of the sandbox does not let it reach its relay, so it has no model',
    { hint: 'gVisor needs --network=host: add it to its runtimeArgs in daemon.json.' },
  );
}

/** Whether another container holds the network, so that another relay can join it. */
function outlivesRelay(network: ContainerSpec['network']): boolean {
  return typeof network === 'object';
}

function relayDied(deaths: readonly string[]): OffsiteError {
  const times = deaths.length === 1 ? 'once' : `${deaths.length} times`;
  return infrastructureError(
    'RELAY_LOST',
    `The sandbox's relay to its model died ${times}: ${[...new Set(deaths)].join('; ')}`,
    { hint: 'Check that the engine works (docker info) and has free memory.' },
  );
}
