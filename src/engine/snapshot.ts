import { createHash } from 'node:crypto';
import { OffsiteError } from '../offsite-error.ts';
import { type Builder, buildOnce } from './snapshot/build.ts';
import type { SnapshotRequest } from './snapshot/snapshot-request.ts';
import type { Upkeep } from './snapshot/upkeep.ts';

export type SnapshotResult =
  /** `built`: by this request, rather than found or built for another. */
  | { kind: 'snapshot'; imageId: string; built: boolean }
  /** `processes`: the commands that still ran when `build` was done. An image cannot keep their state. */
  | { kind: 'not-snapshotable'; processes: string[] };

export interface SnapshotStore {
  snapshot(request: SnapshotRequest, signal?: AbortSignal): Promise<SnapshotResult>;
}

/**
 * Snapshots of one engine. Concurrent requests for the same one wait for a single build, even one of another
 * process. One round trip for a snapshot that exists.
 */
export function snapshotStore(builder: Builder, upkeep: Upkeep): SnapshotStore {
  const running = new Map<string, Promise<SnapshotResult>>();
  const impossible = new Map<string, SnapshotResult>();

  async function make(request: SnapshotRequest, tag: string, signal?: AbortSignal): Promise<SnapshotResult> {
    const known = await builder.port.images.find(`${builder.repository}:${tag}`, signal);
    if (known !== undefined) {
      upkeep.used(known);
      return { kind: 'snapshot', imageId: known.id, built: false };
    }
    const result = await buildOnce(builder, request, tag, signal);
    if (result.kind === 'not-snapshotable') {
      impossible.set(tag, result);
      return result;
    }
    if (result.kind === 'built') upkeep.built(result.imageId);
    return { kind: 'snapshot', imageId: result.imageId, built: result.kind === 'built' };
  }

  return {
    async snapshot(request, signal) {
      const tag = snapshotTag(request);
      for (;;) {
        signal?.throwIfAborted();
        const refused = impossible.get(tag);
        if (refused !== undefined) return refused;
        const other = running.get(tag);
        if (other === undefined) break;
        const result = await waitFor(other, signal);
        if (result !== 'builder-canceled') {
          return result.kind === 'snapshot' ? { ...result, built: false } : result;
        }
      }
      const own = make(request, tag, signal).catch((error: unknown) => {
        // Other requests that wait for this build did not cancel it: they try again.
        throw signal?.aborted ? new BuilderCanceled(error) : error;
      });
      running.set(tag, own);
      try {
        return await own;
      } catch (error) {
        throw error instanceof BuilderCanceled ? error.cause : error;
      } finally {
        running.delete(tag);
      }
    },
  };
}

class BuilderCanceled extends Error {
  constructor(cause: unknown) {
    super('the request that built this snapshot was canceled', { cause });
  }
}

async function waitFor(
  build: Promise<SnapshotResult>,
  signal?: AbortSignal,
): Promise<SnapshotResult | 'builder-canceled'> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal?.reason);
  signal?.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([build, aborted]);
  } catch (error) {
    if (error instanceof BuilderCanceled) return 'builder-canceled';
    throw error;
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}

function snapshotTag({ parentImageId, key }: SnapshotRequest): string {
  if (key === '') {
    throw new OffsiteError('A snapshot needs a key that describes what it is made of.', {
      code: 'ENGINE_SNAPSHOT_KEY',
      kind: 'input',
    });
  }
  return createHash('sha256')
    .update(JSON.stringify([parentImageId, key]))
    .digest('hex')
    .slice(0, 32);
}
