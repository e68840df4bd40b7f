import type { ContainerSpec } from '../container/container-spec.ts';
import type { Container } from '../container.ts';

interface SharedRequest {
  /**
   * Everything that the result depends on except the parent image: script, files, environment, user. Hashed,
   * never shown.
   */
  key: string;
  /** A description for lists of images; shown, not part of the key. */
  description?: string;
  /** Called before this request waits until another Offsite process has built the same snapshot. */
  waits?(): void;
}

/** A step that turns one image into another: the container it runs in, and what it does in it. */
export interface SnapshotRequest extends SharedRequest {
  parentImageId: string;
  /** The container it is built in. */
  container: Omit<ContainerSpec, 'imageId'>;
  /** Creates the state in a started container. `snapshot()` rethrows what this throws. */
  build(container: Container): Promise<unknown>;
}

/** A volume to fill, and the container that fills it. */
export interface VolumeRequest extends SnapshotRequest {
  /** Absolute; where the volume is in that container, and must be in all others. */
  path: string;
}

/** An image that the engine's builder makes. */
export interface ImageRequest extends SharedRequest {
  /** Any image. During the build, a container of it exists as the lock; it is never started. */
  lockImageId: string;
  /** The image that it is made from, whose size is not counted. Undefined if there is none. */
  parentImageId: string | undefined;
  /** Makes the image with this name and these labels. `image()` rethrows what this throws. */
  make(image: { name: string; labels: Readonly<Record<string, string>> }): Promise<unknown>;
}
