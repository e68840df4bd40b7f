/** Every object that Offsite creates carries this label. */
export const OWNED_LABEL = 'offsite';
/** The instance (one running agent) that created the object. */
export const INSTANCE_LABEL = 'offsite.instance';
/** When it was created: epoch milliseconds of the creating machine. */
export const CREATED_LABEL = 'offsite.created';
/** On a snapshot: the id of the image it was made from. */
export const PARENT_LABEL = 'offsite.parent';
/** On a snapshot: the description from its request. */
export const DESCRIPTION_LABEL = 'offsite.description';
/** On a snapshot that stands for a volume, and on that volume: the volume's name. */
export const VOLUME_LABEL = 'offsite.volume';
/** On a snapshot that stands for a volume: the bytes in the volume. */
export const VOLUME_BYTES_LABEL = 'offsite.volume-bytes';
/** The object's role for Offsite: `container`, `marker`, `snapshot` or `volume`. */
export const ROLE_LABEL = 'offsite.role';

export type Role = 'container' | 'marker';

/** The labels of a new object; the caller's come first, so they cannot change its owner. */
export function ownershipLabels(
  owner: { instance: string; role: Role; createdAt: number },
  extra: Record<string, string> = {},
): Record<string, string> {
  return {
    ...extra,
    [OWNED_LABEL]: '1',
    [INSTANCE_LABEL]: owner.instance,
    [ROLE_LABEL]: owner.role,
    [CREATED_LABEL]: String(owner.createdAt),
  };
}

export function snapshotLabels(createdAt: number): Record<string, string> {
  return sharedLabels('snapshot', createdAt);
}

export function volumeLabels(name: string, createdAt: number): Record<string, string> {
  return { ...sharedLabels('volume', createdAt), [VOLUME_LABEL]: name };
}

function sharedLabels(role: 'snapshot' | 'volume', createdAt: number): Record<string, string> {
  return {
    [OWNED_LABEL]: '1',
    [ROLE_LABEL]: role,
    [CREATED_LABEL]: String(createdAt),
    // The object outlives the instance: if its label named one, a sweep would find that instance dead.
    [INSTANCE_LABEL]: '',
  };
}
