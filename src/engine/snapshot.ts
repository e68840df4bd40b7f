import { createHash } from 'node:crypto';
import { abortable } from '../base/deadline.ts';
import { OffsiteError } from '../base/offsite-error.ts';
import type { Container } from './container.ts';
import { type Builder, type Built, buildOnce, makeOnce } from './snapshot/build.ts';
import type { ImageRequest, SnapshotRequest, VolumeRequest } from './snapshot/snapshot-request.ts';
import type { Upkeep } from './snapshot/upkeep.ts';
import { fillOnce, holdVolume, type SharedVolume } from './snapshot/volume.ts';

export type SnapshotResult =
  /** `built`: whether this request built it. False if it was found, or built for another request. */
  | { kind: 'snapshot'; imageId: string; built: boolean }
  /** `processes`: the commands that still ran when `build` was done. An image cannot keep their state. */
  | { kind: 'not-snapshotable'; processes: string[] };

export interface SnapshotStore {
  snapshot(request: SnapshotRequest, signal?: AbortSignal): Promise<SnapshotResult>;
  image(request: ImageRequest, signal?: AbortSignal): Promise<{ imageId: string; built: boolean }>;
  volume(request: VolumeRequest, signal?: AbortSignal): Promise<SharedVolume>;
}

/**
 * Snapshots of one engine. Concurrent requests for the same snapshot wait for a single build, even if another
 * process runs it. One round trip for a snapshot that exists.
 */
export function snapshotStore(builder: Builder, upkeep: Upkeep): SnapshotStore {
  const running = new Map<string, { made: Promise<SnapshotResult>; by: AbortSignal | undefined }>();
  const impossible = new Map<string, SnapshotResult>();
  const holders = new Map<string, Container>();

  async function make(
    build: (builder: Builder, tag: string) => Promise<Built>,
    tag: string,
    signal?: AbortSignal,
  ): Promise<SnapshotResult> {
    const known = await builder.port.images.find(`${builder.repository}:${tag}`, signal);
    if (known !== undefined) {
      upkeep.used(known);
      return { kind: 'snapshot', imageId: known.id, built: false };
    }
    const result = await build(builder, tag);
    if (result.kind === 'not-snapshotable') {
      impossible.set(tag, result);
      return result;
    }
    if (result.kind === 'built') upkeep.built(result.imageId);
    return { kind: 'snapshot', imageId: result.imageId, built: result.kind === 'built' };
  }

  async function once(
    tag: string,
    build: (builder: Builder, tag: string) => Promise<Built>,
    signal: AbortSignal | undefined,
  ): Promise<SnapshotResult> {
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
    const made = make(build, tag, signal);
    running.set(tag, { made, by: signal });
    try {
      return await made;
    } finally {
      running.delete(tag);
    }
  }

  return {
    snapshot: (request, signal) =>
      once(
        tagOf([request.parentImageId, request.key]),
        (builder, tag) => buildOnce(builder, request, tag, signal),
        signal,
      ),
    async image(request, signal) {
      const tag = tagOf(['build', request.key]);
      const made = await once(tag, (builder) => makeOnce(builder, request, tag, signal), signal);
      if (made.kind === 'snapshot') return made;
      throw new Error('a build leaves no processes');
    },
    async volume(request, signal) {
      const tag = tagOf([`volume ${request.path} ${request.parentImageId}`, request.key]);
      const fill = async () => {
        const made = await once(tag, (builder) => fillOnce(builder, request, tag, signal), signal);
        if (made.kind === 'snapshot') return made;
        throw new Error('a volume keeps no processes');
      };
      return holdVolume(builder, request, tag, { holders, fill }, signal);
    },
  };
}

function tagOf([from, key]: [from: string, key: string]): string {
  if (key === '') {
    throw new OffsiteError('A snapshot needs a key that describes what it is made of.', {
      code: 'ENGINE_SNAPSHOT_KEY',
      kind: 'input',
    });
  }
  return createHash('sha256')
    .update(JSON.stringify([from, key]))
    .digest('hex')
    .slice(0, 32);
}
