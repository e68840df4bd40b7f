import type { ContainerSpec } from '../container/container-spec.ts';
import type { Container } from '../container.ts';

/** A step that turns one image into another: the container it runs in, and what it does in it. */
export interface SnapshotRequest {
  parentImageId: string;
  /** The container it is built in. */
  container: Omit<ContainerSpec, 'imageId'>;
  /**
   * Everything that the result depends on except the parent image: script, files, environment, user. Hashed,
   * never shown.
   */
  key: string;
  /** A description for lists of images; shown, not part of the key. */
  description?: string;
  /** Called before this request waits for another agent's build of the same snapshot. */
  waits?(): void;
  /** Creates the state in a started container. `snapshot()` rethrows what this throws. */
  build(container: Container): Promise<unknown>;
}
