import type { Clock } from '../../base/clock.ts';
import type { Capabilities } from './capabilities.ts';
import type { ContainerPort } from './containers.ts';
import type { ImagePort } from './images.ts';

/**
 * Everything that Offsite needs from a container engine. `docker/` and `podman/` implement it. The
 * checks in `conformance/` say what an implementation must do. Everything else in `engine/` builds on it.
 *
 * Each method is one request to the engine with its own deadline, unless it says otherwise. Each throws an
 * error of one of the kinds in failure.ts, or the reason of the caller's signal.
 */
export interface EnginePort {
  /** Measures the deadlines of all requests. */
  readonly clock: Clock;
  /** Requests sent so far. One round trip is the unit of cost of everything here. */
  readonly roundTrips: number;
  /** What the engine is and can do. */
  facts(signal?: AbortSignal): Promise<Capabilities>;
  readonly images: ImagePort;
  readonly containers: ContainerPort;
  /** The objects of a kind that carry every one of these labels: `key` or `key=value`. */
  list(kind: ObjectKind, labels: readonly string[], signal?: AbortSignal): Promise<ListedObject[]>;
  /** Makes an empty volume. Does nothing if there is one of that name. */
  createVolume(name: string, labels: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<void>;
  /**
   * Removes an object; does nothing if it does not exist. A container is removed even if it runs, with its
   * anonymous volumes. An image is removed by name or id, and its parents stay. Throws a `conflict` while
   * something else uses the object, or another request is removing it.
   */
  remove(kind: ObjectKind | 'image', id: string, signal?: AbortSignal): Promise<void>;
}

/** An engine that this process is connected to. */
export interface OpenEngine {
  port: EnginePort;
  /** Call this when the Offsite process starts to end: from then on, a silent engine soon counts as gone. */
  beginEnding(): void;
  /** Closes idle connections. */
  close(): void;
}

export type ObjectKind = 'container' | 'network' | 'volume';

/** Something that an engine keeps and that carries labels. */
export interface ListedObject {
  kind: ObjectKind;
  /** For a volume, its name. */
  id: string;
  name: string;
  labels: Readonly<Record<string, string>>;
  /** Epoch milliseconds of the engine's clock. */
  createdAt: number;
  /** A container's: `created`, `running`, `exited`, ... */
  state?: string;
  /** A container's: the image it is made of. */
  imageId?: string;
}
