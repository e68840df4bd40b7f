import { type Clock, systemClock } from '../clock.ts';
import { readCapabilities } from './capabilities.ts';
import { connect } from './connection/connect.ts';
import type { ContainerSpec } from './container/container-spec.ts';
import { createFromSpec } from './container/create.ts';
import { containerOf } from './container.ts';
import type { Engine } from './engine.ts';
import { findImage } from './image.ts';
import { livenessMarker } from './liveness-marker.ts';
import { snapshotStore } from './snapshot.ts';
import { removeOwned, sweepDead } from './sweep.ts';

export interface ConnectOptions {
  /** Where the engine is: `unix://`, `tcp://`, `ssh://`. Wins over everything in the environment. */
  host?: string | undefined;
  /** The environment to look for DOCKER_HOST and its kin in; the process's own when left out. */
  env?: NodeJS.ProcessEnv;
  /** Names this running agent. All it creates is labelled with it; two living ones must not share a name. */
  instance: string;
  signal?: AbortSignal;
  clock?: Clock;
}

/** Finds an engine and connects to it. Throws `ENGINE_UNREACHABLE` with what was tried and what to do. */
export async function connectEngine(options: ConnectOptions): Promise<Engine> {
  const { instance, signal } = options;
  const connection = await connect({
    host: options.host,
    env: options.env ?? process.env,
    clock: options.clock ?? systemClock,
    signal,
  });
  const { client } = connection;
  try {
    const capabilities = await readCapabilities(client, connection.apiVersion, signal);
    const marker = livenessMarker(client, instance);
    const createContainer = async (spec: ContainerSpec, signal?: AbortSignal) => {
      // Beside the container, not before it: the first one must not wait.
      marker.ensure(spec.imageId);
      return containerOf(client, await createFromSpec(client, capabilities, instance, spec, signal), spec);
    };
    const snapshots = snapshotStore(client, createContainer);
    return {
      address: connection.address,
      instance,
      docker: client.docker,
      capabilities,
      get roundTrips() {
        return client.roundTrips;
      },
      findImage: (name, signal) => findImage(client, name, signal),
      createContainer,
      snapshot: (request, signal) => snapshots.snapshot(request, signal),
      sweep: (signal) => sweepDead(client, instance, signal),
      async [Symbol.asyncDispose]() {
        try {
          await marker.remove();
          await removeOwned(client, instance);
        } finally {
          await connection.close();
        }
      },
    };
  } catch (error) {
    await connection.close();
    throw error;
  }
}
