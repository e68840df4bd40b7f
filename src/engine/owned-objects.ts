import { ownProcess } from './owner-process.ts';
import type { EnginePort, ListedObject, ObjectKind } from './port/engine-port.ts';

/** Something on the engine that an Offsite process created. */
export interface OwnedObject {
  kind: ObjectKind | 'image';
  /** For a volume, its name. */
  id: string;
  name: string;
  /** The Offsite process that created it; empty for objects that outlive their creator. */
  instance: string;
  labels: Readonly<Record<string, string>>;
  /** Epoch milliseconds. */
  createdAt: number;
  /** A container's: `created`, `running`, `exited`, ... */
  state?: string;
}

/** The containers of all instances, without those that belong to none. One round trip. */
export async function ownedContainers(port: EnginePort, signal?: AbortSignal): Promise<OwnedObject[]> {
  const found = await port.list('container', [ownedLabel], signal);
  return found.map(owned).filter(({ instance }) => instance !== '');
}

/** The containers of one instance. One round trip. */
export async function containersOf(port: EnginePort, instance: string): Promise<OwnedObject[]> {
  return (await port.list('container', [`${instanceLabel}=${instance}`])).map(owned);
}

/** The containers, networks and volumes of all instances. Three round trips. */
export async function ownedObjects(port: EnginePort, signal?: AbortSignal): Promise<OwnedObject[]> {
  const [containers, ...others] = await Promise.all([
    ownedContainers(port, signal),
    port.list('network', [instanceLabel], signal),
    port.list('volume', [instanceLabel], signal),
  ]);
  return [...containers, ...others.flat().map(owned)];
}

/** Offsite's images that no longer have a name. One round trip. */
export async function namelessImages(port: EnginePort, signal?: AbortSignal): Promise<OwnedObject[]> {
  const labels = [ownedLabel, parentLabel, `${roleLabel}=snapshot`];
  const found = await port.images.listNameless(labels, signal);
  return (
    found
      // An image that somebody builds on a snapshot inherits its labels, but its parent is the snapshot
      // itself.
      .filter(({ parentId, labels }) => parentId === '' || parentId === labels[parentLabel])
      .map((image) => owned({ ...image, kind: 'image', name: '' }))
  );
}

/**
 * Volumes that no snapshot stands for: an Offsite process ended while it filled them. One round trip, and one
 * more if there are volumes.
 */
export async function incompleteVolumes(port: EnginePort, signal?: AbortSignal): Promise<OwnedObject[]> {
  const volumes = await port.list('volume', [`${roleLabel}=volume`, volumeLabel], signal);
  if (volumes.length === 0) return [];
  const complete = new Set((await port.images.list(signal)).map(({ labels }) => labels[volumeLabel]));
  return volumes.filter(({ labels }) => !complete.has(labels[volumeLabel])).map(owned);
}

function owned(object: Omit<ListedObject, 'kind'> & Pick<OwnedObject, 'kind'>): OwnedObject {
  const { kind, id, name, labels, state } = object;
  const created = labels[createdLabel];
  return {
    kind,
    id,
    name,
    instance: labels[instanceLabel] ?? '',
    labels,
    createdAt: created === undefined ? object.createdAt : Number(created),
    ...(state !== undefined && { state }),
  };
}

/** Every object that Offsite creates carries this label. */
export const ownedLabel = 'offsite';
/** The instance (one Offsite process) that created the object. */
export const instanceLabel = 'offsite.instance';
/** That process as its machine knows it; see owner-process.ts. */
export const processLabel = 'offsite.process';
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

type Role = 'container' | 'marker';

/** The labels of a new object; the caller's come first, so they cannot change its owner. */
export function ownershipLabels(
  owner: { instance: string; role: Role; createdAt: number },
  extra: Record<string, string> = {},
): Record<string, string> {
  return {
    ...extra,
    [ownedLabel]: '1',
    [instanceLabel]: owner.instance,
    [processLabel]: ownProcess,
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
    [processLabel]: '',
  };
}
