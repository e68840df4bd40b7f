import { randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { type Clock, systemClock } from '../base/clock.ts';
import { OffsiteError } from '../base/offsite-error.ts';
import { tarPrograms } from './archive/tar-program.ts';
import { findBuilder, type ImageBuilder } from './build/find-builder.ts';
import { assertEnforceable } from './capabilities.ts';
import { connect } from './connection/connect.ts';
import type { ContainerSpec } from './container/container-spec.ts';
import { type CreateOptions, createFromSpec, createWithin } from './container/create.ts';
import { fillHosts } from './container/hosts-file.ts';
import { ignoreRemovalFailure, removeContainer } from './container/remove.ts';
import { runtimeProbe } from './container/runtime-probe.ts';
import { containerOf } from './container.ts';
import type { Engine } from './engine.ts';
import { livenessMarker } from './liveness-marker.ts';
import { openNetwork } from './network/network.ts';
import { ownFilesVolume } from './own-files/volume.ts';
import { descriptionLabel, parentLabel } from './owned-objects.ts';
import { imageSource, type PullPolicy } from './pull/obtain-image.ts';
import { serviceOf } from './service.ts';
import { removeSnapshots } from './snapshot/eviction.ts';
import { keptSnapshots, snapshotRepository } from './snapshot/kept-snapshots.ts';
import { upkeepOf } from './snapshot/upkeep.ts';
import { snapshotStore } from './snapshot.ts';
import { removeOwned, sweepDead } from './sweep.ts';

export interface ConnectOptions {
  /** Where the engine is: `unix://`, `tcp://`, `ssh://`. Wins over everything in the environment. */
  host?: string | undefined;
  /** The environment that may set DOCKER_HOST and similar variables; default `process.env`. */
  env?: NodeJS.ProcessEnv;
  /**
   * The name of this Offsite process. Everything that the process creates is labeled with it; two running
   * processes must not share a name.
   */
  instance: string;
  /** What the configuration calls the engine, if it names several. */
  name?: string | undefined;
  /** A folder with `ca.pem`, `cert.pem` and `key.pem`, for TLS. Default: as for the `docker` CLI. */
  certificates?: string | undefined;
  /** The most trials at a time. */
  trials?: number | undefined;
  signal?: AbortSignal;
  /**
   * Aborts when this Offsite process starts to end, which may be long before the engine is disposed. From
   * then on, an engine that is silent for some time counts as gone.
   */
  ending?: AbortSignal | undefined;
  clock?: Clock;
  snapshots?: {
    /**
     * The name of the images, without a tag. Offsite processes that share an engine should share this name
     * too.
     */
    repository?: string;
    /**
     * Bytes that all snapshots may take; beyond that, the least recently used ones are removed. Default:
     * unlimited.
     */
    budgetBytes?: number | undefined;
  };
  /** What the engine's machine has that not every machine has. Default: nothing. */
  labels?: readonly string[] | undefined;
  /** Default: never. */
  pull?: PullPolicy | undefined;
  /** Receives messages about background work that the user may want to see. */
  note?: (message: string) => void;
}

/**
 * Finds an engine and connects to it. Throws `ENGINE_UNREACHABLE`, which says what was tried and what to do.
 */
export async function connectEngine(options: ConnectOptions): Promise<Engine> {
  const { instance, signal } = options;
  const connection = await connect({
    host: options.host,
    certificates: options.certificates,
    env: options.env ?? process.env,
    clock: options.clock ?? systemClock,
    signal,
  });
  const { port } = connection;
  options.ending?.addEventListener('abort', connection.beginEnding, { once: true });
  try {
    const capabilities = await port.facts(signal);
    const ownFilesFor = ownFilesVolume(port, instance, capabilities);
    const marker = livenessMarker({ port, instance, capabilities });
    const fill = fillHosts(port);
    const probe = runtimeProbe({ port, instance, capabilities });
    const create = createWithin(port, capabilities);
    const parts = { port, create, instance, capabilities, probe };
    const tar = tarPrograms(parts);
    const createContainer = async (spec: ContainerSpec, options: CreateOptions) => {
      assertEnforceable(spec, capabilities);
      // Before the marker, for which the engine would make the volume of the files if there is none.
      const ownFiles = await ownFilesFor(spec.imageId);
      marker.ensure(spec.imageId);
      const { id, ...created } = await createFromSpec({ ...parts, ownFiles }, spec, options);
      try {
        await fill(id, spec, options.signal);
        return containerOf(port, id, spec, { ...created, tar });
      } catch (error) {
        await removeContainer(port, id).catch(ignoreRemovalFailure);
        throw error;
      }
    };
    const { repository = snapshotRepository, budgetBytes } = options.snapshots ?? {};
    const { note = () => undefined, env = process.env, pull = 'never' } = options;
    let builder: Promise<ImageBuilder> | undefined;
    const upkeep = upkeepOf({ port, repository, budgetBytes, note });
    return {
      address: connection.address,
      instance,
      name: options.name,
      trials: options.trials,
      port,
      capabilities,
      labels: options.labels ?? [],
      get roundTrips() {
        return port.roundTrips;
      },
      findImage: (name, signal) => port.images.find(name, signal),
      obtainImage: imageSource(port, pull, env),
      createContainer: (spec, signal) => createContainer(spec, { signal }),
      openNetwork(request, signal) {
        const create = (spec: ContainerSpec, signal?: AbortSignal) => createContainer(spec, { signal });
        return openNetwork({ createContainer: create, capabilities, clock: port.clock }, request, signal);
      },
      createService: async (spec, signal) => serviceOf(port, spec, await createContainer(spec, { signal })),
      ...snapshotStore({ port, instance, repository, createContainer }, upkeep),
      builder: (signal) => (builder ??= findBuilder(port, capabilities, connection.cliHost, env, signal)),
      async keep(container, { parentImageId, description }, signal) {
        const labels = { [parentLabel]: parentImageId, [descriptionLabel]: description };
        const tag = `left-${randomBytes(12).toString('hex')}`;
        const imageId = await container.commit({ repository, tag, labels }, signal);
        upkeep.kept(imageId);
        return imageId;
      },
      keptSnapshots: (signal) => keptSnapshots(port, repository, signal),
      removeSnapshots: (chosen, signal) => removeSnapshots(port, chosen, signal),
      sweep: (signal, options) => sweepDead(port, instance, { ...options, signal }),
      async [Symbol.asyncDispose]() {
        let connected: Duplex | undefined;
        try {
          // Before `beginEnding`, which allows less time than an engine may need to remove large images.
          await upkeep[Symbol.asyncDispose]();
          connection.beginEnding();
          connected = await marker.end();
          await removeOwned(port, instance);
        } catch (error) {
          if (!(error instanceof OffsiteError)) throw error;
          note(leftMessage(connection.address, error));
        } finally {
          connected?.destroy();
          options.ending?.removeEventListener('abort', connection.beginEnding);
          await connection.close();
        }
      },
    };
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/** Objects left on the engine are no reason to fail: the next Offsite process that uses it removes them. */
function leftMessage(address: string, error: OffsiteError): string {
  return `something may be left on the engine ${address}: ${error.message}
  The next command that runs trials there removes it.`;
}
