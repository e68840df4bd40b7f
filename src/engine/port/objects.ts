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
