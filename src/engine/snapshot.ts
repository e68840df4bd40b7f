import { createHash } from 'node:crypto';
import { abortable } from '../base/deadline.ts';
import { inputError } from '../base/offsite-error.ts';
import type { ContainerSpec } from './container/container-spec.ts';
import type { Container } from './container.ts';
import {
  type Builder,
  commitBuilt,
  type ImageRequest,
  lockSpec,
  makeImage,
  type NotSnapshotable,
  type SnapshotRequest,
  takeTurn,
  type VolumeRequest,
} from './snapshot/build.ts';
import type { Upkeep } from './snapshot/upkeep.ts';
import { fillVolume, holdVolume, type SharedVolume } from './snapshot/volume.ts';

/** `built`: whether this request built it. False if it was found, or built for another request. */
export type SnapshotResult = { kind: 'snapshot'; imageId: string; built: boolean } | NotSnapshotable;

export interface SnapshotStore {
  /** Finds or builds a snapshot: the image of a state that is built once and shared. */
  snapshot(request: SnapshotRequest, signal?: AbortSignal): Promise<SnapshotResult>;
  /** Finds or makes an image with the engine's builder. It is kept as snapshots are. */
  image(request: ImageRequest, signal?: AbortSignal): Promise<{ imageId: string; built: boolean }>;
  /** Finds or fills a volume that containers share. It is kept as snapshots are. */
  volume(request: VolumeRequest, signal?: AbortSignal): Promise<SharedVolume>;
}

/** A snapshot to make in a container whose name is the lock. */
interface Making {
  tag: string;
  lock: ContainerSpec;
  request: Pick<SnapshotRequest, 'waits'>;
  /** Resolves with the id of the image. */
  build(lock: Container): Promise<string | NotSnapshotable>;
  signal: AbortSignal | undefined;
}

/**
 * Snapshots of one engine. Concurrent requests for the same snapshot wait for a single build, even if another
 * process runs it. One round trip for a snapshot that exists.
 */
export function snapshotStore(builder: Builder, upkeep: Upkeep): SnapshotStore {
  const running = new Map<string, { made: Promise<SnapshotResult>; by: AbortSignal | undefined }>();
  const impossible = new Map<string, SnapshotResult>();
  const holders = new Map<string, Container>();

  async function make({ tag, lock, request, build, signal }: Making): Promise<SnapshotResult> {
    const find = () => builder.port.images.find(`${builder.repository}:${tag}`, signal);
    const known = await find();
    if (known !== undefined) {
      upkeep.used(known);
      return { kind: 'snapshot', imageId: known.id, built: false };
    }
    await using turn = await takeTurn(builder, lock, request, tag, signal);
    // Another Offsite process may have finished between the search that found nothing and this point.
    const found = await find();
    if (found !== undefined) return { kind: 'snapshot', imageId: found.id, built: false };
    const made = await build(turn);
    if (typeof made === 'string') {
      upkeep.built(made);
      return { kind: 'snapshot', imageId: made, built: true };
    }
    impossible.set(tag, made);
    return made;
  }

  async function once(making: Making): Promise<SnapshotResult> {
    const { tag, signal } = making;
    for (;;) {
      signal?.throwIfAborted();
      const refused = impossible.get(tag);
      if (refused !== undefined) return refused;
      const other = running.get(tag);
      if (other === undefined) break;
      try {
        const result = await abortable(other.made, signal);
        return result.kind === 'snapshot' ? { ...result, built: false } : result;
      } catch (error) {
        // Requests that wait for a build did not cancel it: they try again.
        if (!other.by?.aborted) throw error;
      }
    }
    const made = make(making);
    running.set(tag, { made, by: signal });
    try {
      return await made;
    } finally {
      running.delete(tag);
    }
  }

  /** The same for what leaves no processes. */
  async function onceStill(making: Making) {
    const made = await once(making);
    if (made.kind === 'snapshot') return made;
    throw new Error('an image without processes cannot be made');
  }

  return {
    snapshot(request, signal) {
      const tag = tagOf(request.parentImageId, request.key);
      const lock = { ...request.container, imageId: request.parentImageId };
      const build = (container: Container) => commitBuilt(builder, container, request, tag, signal);
      return once({ tag, lock, request, build, signal });
    },
    image(request, signal) {
      const tag = tagOf('build', request.key);
      const lock = { ...lockSpec, imageId: request.lockImageId };
      return onceStill({ tag, lock, request, build: () => makeImage(builder, request, tag, signal), signal });
    },
    volume(request, signal) {
      const tag = tagOf(`volume ${request.path} ${request.parentImageId}`, request.key);
      const lock = { ...lockSpec, imageId: request.parentImageId };
      const build = (held: Container) => fillVolume(builder, held, request, tag, signal);
      const fill = () => onceStill({ tag, lock, request, build, signal });
      return holdVolume(builder, request, tag, { holders, fill }, signal);
    },
  };
}

function tagOf(from: string, key: string): string {
  if (key === '') {
    throw inputError('ENGINE_SNAPSHOT_KEY', 'A snapshot needs a key that describes what it is made of.');
  }
  return createHash('sha256')
    .update(JSON.stringify([from, key]))
    .digest('hex')
    .slice(0, 32);
}
