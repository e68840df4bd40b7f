import type { Duplex } from 'node:stream';
import { removeContainer } from './container/remove.ts';
import { filterFor } from './container/seccomp/filter.ts';
import { ownershipLabels } from './labels.ts';
import type { Capabilities } from './port/capabilities.ts';
import type { EnginePort } from './port/engine-port.ts';
import { isEngineFailure } from './port/failure.ts';

/**
 * A tiny container that runs for as long as this process does: it reads a standard input that only we hold,
 * so that even a SIGKILL of ours ends it. A running marker tells every other instance that ours is alive.
 */
export interface LivenessMarker {
  /**
   * Makes sure the marker runs, or is on its way; any image with `cat` will do. Returns at once. Throws what
   * went wrong when an earlier marker failed: without one, others would take our containers for a dead
   * instance's.
   */
  ensure(imageId: string): void;
  /** Ends the marker and removes it. */
  remove(): Promise<void>;
}

/**
 * An engine with much to do refuses a start now and then ("cannot start an already running container"), and
 * takes the next one. What cut the marker's connection also cut idle ones, which the next requests still try
 * to use.
 */
const ATTEMPTS = 3;

type MarkerState =
  | { kind: 'none' }
  | { kind: 'starting'; ready: Promise<void> }
  | { kind: 'running'; id: string; connection: Duplex }
  | { kind: 'failed'; error: unknown };

export function livenessMarker(
  port: EnginePort,
  instance: string,
  capabilities: Capabilities,
): LivenessMarker {
  let state: MarkerState = { kind: 'none' };

  async function start(imageId: string): Promise<void> {
    const id = await createMarker(port, instance, capabilities, imageId);
    try {
      const connection = await attachAndStart(port, id);
      connection.on('close', () => {
        if (state.kind !== 'running' || state.connection !== connection) return;
        // Somebody stopped it, and our containers look dead now. Where that was the engine being restarted
        // this fails, and the next container brings a new marker.
        state = { kind: 'starting', ready: restart(id, imageId) };
      });
      connection.resume();
      state = { kind: 'running', id, connection };
    } catch (error) {
      await removeContainer(port, id);
      throw error;
    }
  }

  async function startWithRetries(imageId: string): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await start(imageId);
      } catch (error) {
        const mayPass = isEngineFailure(error, 'refused') || isEngineFailure(error, 'connection');
        if (!mayPass || attempt === ATTEMPTS) throw error;
      }
    }
  }

  async function restart(id: string, imageId: string): Promise<void> {
    try {
      await startWithRetries(imageId);
      await removeContainer(port, id);
    } catch {
      state = { kind: 'none' };
    }
  }

  return {
    ensure(imageId) {
      if (state.kind === 'failed') {
        const { error } = state;
        state = { kind: 'none' };
        throw error;
      }
      if (state.kind !== 'none') return;
      const ready = startWithRetries(imageId).catch((error: unknown) => {
        state = { kind: 'failed', error };
      });
      state = { kind: 'starting', ready };
    },
    async remove() {
      if (state.kind === 'starting') await state.ready;
      if (state.kind !== 'running') return;
      const { id, connection } = state;
      state = { kind: 'none' };
      await removeContainer(port, id);
      connection.destroy();
    },
  };
}

async function createMarker(
  port: EnginePort,
  instance: string,
  capabilities: Capabilities,
  imageId: string,
): Promise<string> {
  const { id } = await port.containers.create({
    imageId,
    command: ['cat'],
    stdin: true,
    user: '65534:65534',
    labels: ownershipLabels({ instance, role: 'marker', createdAt: port.clock.now() }),
    network: 'none',
    memoryBytes: 16 * 2 ** 20,
    pids: 4,
    capabilities: [],
    filter: filterFor('sandbox', capabilities),
    readOnlyRoot: true,
  });
  return id;
}

/** Attached before it is started, so that `cat` never sees an input that nobody holds. */
async function attachAndStart({ containers }: EnginePort, id: string): Promise<Duplex> {
  const connection = await containers.attach(id, { onStderr: () => undefined });
  try {
    await containers.start(id);
  } catch (error) {
    connection.destroy();
    throw error;
  }
  return connection;
}
