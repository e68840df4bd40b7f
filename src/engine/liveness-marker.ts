import { randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { backoff } from '../base/clock.ts';
import { connectionWaits } from './connection/ending.ts';
import { ignoreRemovalFailure, removeContainer } from './container/remove.ts';
import { filterFor } from './container/seccomp/filter.ts';
import { ownFilesMount } from './own-files/volume.ts';
import { type OwnedObject, ownershipLabels, processLabel, roleLabel } from './owned-objects.ts';
import { hasProcessEnded } from './owner-process.ts';
import { otherPlainRuntime, type UsedEngine } from './port/engine-port.ts';
import { isEngineFailure } from './port/failure.ts';

/**
 * A tiny container that runs as long as this process does: it reads a standard input that only this process
 * holds, so even a SIGKILL of this process ends it. A running marker shows every other instance that this one
 * is alive.
 */
export interface LivenessMarker {
  /**
   * Makes sure the marker runs or is about to start; any image with `cat` works. Returns at once. Throws the
   * error of an earlier marker of the same image that failed: without a marker, others would treat our
   * containers as a dead instance's.
   */
  ensure(imageId: string): void;
  /**
   * Starts no further marker. Resolves with the connection to the one that runs, which is removed with the
   * other containers of the instance.
   */
  end(): Promise<Duplex | undefined>;
}

/**
 * Milliseconds from the first container to the marker. Until then the instance counts as alive by the age of
 * what it owns. A container costs as much as a short trial, so a run of a few short trials has no marker.
 */
const startMs = 3_000;

/**
 * A busy engine sometimes refuses a start ("cannot start an already running container") and accepts the next
 * one.
 */
const attemptCount = 3;

interface Marker {
  id: string;
  connection: Duplex;
  /** Resolves when the connection has ended, and the marker with it. */
  over: Promise<void>;
}

export function livenessMarker(used: UsedEngine): LivenessMarker {
  const { port } = used;
  const ended = new AbortController();
  let due: Promise<void> | undefined;
  let isKept = false;
  /** The one that runs or is being started. */
  let marker: Promise<Marker> | undefined;
  let failed: { error: unknown; imageId: string } | undefined;

  /** Keeps a marker. If something stops it, our containers look dead, so another one starts. */
  async function keep(imageId: string): Promise<void> {
    let last: Marker | undefined;
    try {
      due ??= port.clock.sleep(startMs, ended.signal);
      await due;
      do {
        marker = startWithRetries(imageId);
        const next = await marker;
        if (last) await removeContainer(port, last.id).catch(ignoreRemovalFailure);
        last = next;
        await last.over;
      } while (!ended.signal.aborted);
    } catch (error) {
      // After one that ran, the next container starts a new marker.
      if (!last) failed = { error, imageId };
      marker = undefined;
    }
    isKept = false;
  }

  /** Tries again while the engine is unreachable, until the marker ends. */
  async function startWithRetries(imageId: string): Promise<Marker> {
    for (let refused = 0, away = 0; ; ) {
      try {
        return await startMarker(used, imageId);
      } catch (error) {
        if (isEngineFailure(error, 'connection')) {
          // Whatever cut the marker's connection also cut idle ones, which the next request still tries to
          // use. So the second try comes at once.
          if (away > 0) await port.clock.sleep(backoff(away, connectionWaits, Math.random), ended.signal);
          away += 1;
        } else if (!isEngineFailure(error, 'refused') || ++refused === attemptCount) {
          throw error;
        }
        ended.signal.throwIfAborted();
      }
    }
  }

  return {
    ensure(imageId) {
      const before = failed;
      failed = undefined;
      // Another image may work: the one that failed may lack `cat`, or be for another machine.
      if (before?.imageId === imageId) throw before.error;
      if (isKept) return;
      isKept = true;
      void keep(imageId);
    },
    async end() {
      ended.abort();
      return (await marker?.catch(() => undefined))?.connection;
    },
  };
}

/** Attaches before the start, so that `cat` never sees a closed input. */
async function startMarker(used: UsedEngine, imageId: string): Promise<Marker> {
  const { containers } = used.port;
  const id = await createMarker(used, imageId);
  let connection: Duplex | undefined;
  try {
    const attached = await containers.attach(id, { onStderr: () => undefined });
    connection = attached.resume();
    const over = new Promise<void>((resolve) => attached.once('close', resolve));
    await containers.start(id);
    return { id, connection, over };
  } catch (error) {
    connection?.destroy();
    await removeContainer(used.port, id).catch(ignoreRemovalFailure);
    throw error;
  }
}

async function createMarker({ port, instance, capabilities }: UsedEngine, imageId: string): Promise<string> {
  const { id } = await port.containers.create({
    imageId,
    name: `offsite-marker-${randomBytes(4).toString('hex')}`,
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
    mounts: [ownFilesMount],
    runtime: otherPlainRuntime(capabilities),
  });
  return id;
}

/** Milliseconds for which an instance without a marker counts as alive: it may be starting its marker. */
export const graceMs = 60_000;

/**
 * A marker also ends when its Offsite process loses the connection to the engine; the process then starts a
 * new marker at once. So an ended marker proves that the process is dead only if there is still no new one
 * this many milliseconds later.
 */
export const reconnectMs = 3_000;

/**
 * Whether the instance that owns `objects` (which include all of its containers) is dead. If its process can
 * be seen from here, that decides. Otherwise it is dead if its marker has ended, or is missing and everything
 * it owns is older than the grace period. A marker that is about to start counts as missing.
 */
export function isDead(objects: readonly OwnedObject[], now: number): boolean {
  const hasOwnerEnded = ownerEnded(objects);
  if (hasOwnerEnded !== undefined) return hasOwnerEnded;
  const markers = objects.filter(isMarker);
  if (markers.some(({ state }) => state === 'running')) return false;
  const isStarting = markers.some(
    ({ state, createdAt }) => state === 'created' && now - createdAt <= graceMs,
  );
  if (!isStarting && markers.some(hasEnded)) return true;
  return objects.every(({ createdAt }) => now - createdAt > graceMs);
}

/** Whether the process that owns `objects` has ended; undefined if it cannot be seen from here. */
export function ownerEnded(objects: readonly OwnedObject[]): boolean | undefined {
  return hasProcessEnded(objects.map(({ labels }) => labels[processLabel]).find(Boolean) ?? '');
}

/** Whether a marker has ended. */
export function hasEnded({ state }: OwnedObject): boolean {
  return state === 'exited' || state === 'dead';
}

export function isMarker({ labels }: OwnedObject): boolean {
  return labels[roleLabel] === 'marker';
}
