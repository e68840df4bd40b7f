/** Every object that Offsite creates carries this label. */
export const ownedLabel = 'offsite';
/** The instance (one Offsite process) that created the object. */
export const instanceLabel = 'offsite.instance';
/** When it was created: epoch milliseconds of the creating machine. */
export const createdLabel = 'offsite.created';
/** On a snapshot: the id of the image it was made from. */
export const parentLabel = 'offsite.parent';
/** On a snapshot: the description from its request. */
export const descriptionLabel = 'offsite.description';
/** On a snapshot that stands for a volume, and on that volume: the volume's name. */
export const volumeLabel = 'offsite.volume';
/** On a snapshot that stands for a volume: the bytes in the volume. */
export const volumeBytesLabel = 'offsite.volume-bytes';
/** The object's role for Offsite: `container`, `marker`, `snapshot` or `volume`. */
export const roleLabel = 'offsite.role';

export type Role = 'container' | 'marker';

/** The labels of a new object; the caller's come first, so they cannot change its owner. */
export function ownershipLabels(
  owner: { instance: string; role: Role; createdAt: number },
  extra: Record<string, string> = {},
): Record<string, string> {
  return {
    ...extra,
    [ownedLabel]: '1',
    [instanceLabel]: owner.instance,
    [roleLabel]: owner.role,
    [createdLabel]: String(owner.createdAt),
  };
}

export function snapshotLabels(createdAt: number): Record<string, string> {
  return sharedLabels('snapshot', createdAt);
}

export function volumeLabels(name: string, createdAt: number): Record<string, string> {
  return { ...sharedLabels('volume', createdAt), [volumeLabel]: name };
}

function sharedLabels(role: 'snapshot' | 'volume', createdAt: number): Record<string, string> {
  return {
    [ownedLabel]: '1',
    [roleLabel]: role,
    [createdLabel]: String(createdAt),
    // The object outlives its creator. If this label named an instance, a sweep would remove the object once
    // that instance is dead.
    [instanceLabel]: '',
  };
}
