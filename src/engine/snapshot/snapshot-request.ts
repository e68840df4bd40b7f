import type { ContainerSpec } from '../container/container-spec.ts';
import type { Container } from '../container.ts';

/** A step that turns one image into another: the container it runs in, and what it does there. */
export interface SnapshotRequest {
  parentImageId: string;
  /** The container it is built in. */
  container: Omit<ContainerSpec, 'imageId'>;
  /**
   * All that the result depends on beside the parent image: script, files, environment, user. Hashed, never
   * shown.
   */
  key: string;
  /** What it is, for whoever lists images; shown, and no part of the key. */
  description?: string;
  /** Makes the state. The container is started; what this throws is thrown to whoever asked. */
  build(container: Container): Promise<void>;
}
