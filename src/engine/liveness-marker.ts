import type { Duplex } from 'node:stream';
import { OffsiteError } from '../offsite-error.ts';
import type { Capabilities } from './capabilities.ts';
import type { EngineClient } from './connection/engine-client.ts';
import { removeContainer } from './container/remove.ts';
import { securityOptions } from './container/seccomp/filter.ts';
import { ownershipLabels } from './labels.ts';

/**
 * A tiny container that runs for as long as this process does: it reads a standard input that only we hold, so that even
 * a SIGKILL of ours ends it. A running marker tells every other instance that ours is alive.
 */
export interface LivenessMarker {
  /**
   * Makes sure the marker runs, or is on its way; any image with `cat` will do. Returns at once. Throws what went wrong
   * when an earlier marker failed: without one, others would take our containers for a dead instance's.
   */
  ensure(imageId: string): void;
  /** Ends the marker and removes it. */
  remove(): Promise<void>;
}

/** An engine with much to do refuses a start now and then ("cannot start an already running container"), and takes the next one. */
const MOST_TRIES = 3;

type MarkerState =
  | { kind: 'none' }
  | { kind: 'starting'; ready: Promise<void> }
  | { kind: 'running'; id: string; connection: Duplex }
  | { kind: 'failed'; error: unknown };

export function livenessMarker(
  client: EngineClient,
  instance: string,
  capabilities: Capabilities,
): LivenessMarker {
  let state: MarkerState = { kind: 'none' };

  async function start(imageId: string): Promise<void> {
    const id = await createMarker(client, instance, capabilities, imageId);
    try {
      const connection = await attachAndStart(client, id);
      connection.on('close', () => {
        if (state.kind !== 'running' || state.connection !== connection) return;
        // Somebody stopped it, and our containers look dead now. Where that was the engine being restarted this fails, and
        // the next container brings a new marker.
        state = { kind: 'starting', ready: restart(id, imageId) };
      });
      connection.resume();
      state = { kind: 'running', id, connection };
    } catch (error) {
      await removeContainer(client, id);
      throw error;
    }
  }

  async function startWithRetries(imageId: string): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await start(imageId);
      } catch (error) {
        const isRefusal = error instanceof OffsiteError && error.code === 'ENGINE_REFUSED';
        if (!isRefusal || attempt === MOST_TRIES) throw error;
      }
    }
  }

  async function restart(id: string, imageId: string): Promise<void> {
    try {
      await start(imageId);
      await removeContainer(client, id);
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
      await removeContainer(client, id);
      connection.destroy();
    },
  };
}

async function createMarker(
  client: EngineClient,
  instance: string,
  capabilities: Capabilities,
  imageId: string,
): Promise<string> {
  const created = await client.call('creating the liveness marker', (abortSignal) =>
    client.docker.createContainer({
      // In the body: dockerode would put plain options in the URL.
      _query: {},
      _body: {
        Image: imageId,
        Entrypoint: ['cat'],
        Cmd: [],
        User: '65534:65534',
        Labels: ownershipLabels({ instance, role: 'marker', createdAt: client.clock.now() }),
        OpenStdin: true,
        StdinOnce: true,
        AttachStdin: true,
        Healthcheck: { Test: ['NONE'] },
        HostConfig: {
          NetworkMode: 'none',
          Memory: 16 * 2 ** 20,
          PidsLimit: 4,
          CapDrop: ['ALL'],
          SecurityOpt: securityOptions('sandbox', capabilities),
          ReadonlyRootfs: true,
          LogConfig: { Type: 'none' },
        },
      },
      abortSignal,
    } as never),
  );
  return created.id;
}

/** Attached before it is started, so that `cat` never sees an input that nobody holds. */
async function attachAndStart(client: EngineClient, id: string): Promise<Duplex> {
  const container = client.docker.getContainer(id);
  const connection = await client.call('attaching to the liveness marker', (abortSignal) =>
    // stdout as well, which says nothing, but ends with the container: stdin alone would not tell us.
    container.attach({ stream: true, stdin: true, stdout: true, hijack: true, abortSignal }),
  );
  // An error is followed by 'close', which is what counts, and may come before anybody else listens.
  (connection as Duplex).on('error', () => undefined);
  try {
    await client.call('starting the liveness marker', (abortSignal) => container.start({ abortSignal }));
  } catch (error) {
    (connection as Duplex).destroy();
    throw error;
  }
  return connection as Duplex;
}
