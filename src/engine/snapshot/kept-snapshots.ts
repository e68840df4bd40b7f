import type Docker from 'dockerode';
import pLimit from 'p-limit';
import type { EngineClient } from '../connection/engine-client.ts';
import { findImage } from '../image.ts';
import { CREATED_LABEL, DESCRIPTION_LABEL, PARENT_LABEL, ROLE_LABEL } from '../labels.ts';

/** A snapshot that an engine keeps. */
export interface KeptSnapshot {
  id: string;
  /** `offsite/snapshot:` and a hash. */
  name: string;
  /** What it is, in the words of whoever had it made. */
  description: string;
  /** Bytes that it adds to its parent's: what its removal gives back. */
  bytes: number;
  /** Epoch milliseconds. */
  createdAt: number;
  /** Epoch milliseconds, up to an hour before the last use. */
  usedAt: number;
  parentId: string;
  /** Whether a container is made of it. */
  inUse: boolean;
}

/** Requests at a time. */
const AT_ONCE = 4;

/** All snapshots named `repository`. Two round trips, and one for each of them: only there an engine says when it was named. */
export async function keptSnapshots(
  client: EngineClient,
  repository: string,
  signal?: AbortSignal,
): Promise<KeptSnapshot[]> {
  const [images, containers] = await Promise.all([
    list<Docker.ImageInfo[]>(client, '/images/json?all=true', signal),
    list<Docker.ContainerInfo[]>(client, '/containers/json?all=true', signal),
  ]);
  const sizes = new Map(images.map(({ Id, Size }) => [Id, Size]));
  const inUse = new Set(containers.map(({ ImageID }) => ImageID));
  const limit = pLimit(AT_ONCE);
  const described = images.map((image) =>
    limit(async (): Promise<KeptSnapshot | undefined> => {
      const name = image.RepoTags?.find((tag) => tag.startsWith(`${repository}:`));
      if (name === undefined || image.Labels?.[ROLE_LABEL] !== 'snapshot') return undefined;
      const found = await findImage(client, image.Id, signal);
      if (found === undefined) return undefined;
      // An engine with containerd's image store knows no parents; there our label tells.
      const parentId = image.ParentId || (found.labels[PARENT_LABEL] ?? '');
      return {
        id: image.Id,
        name,
        description: found.labels[DESCRIPTION_LABEL] ?? '',
        bytes: Math.max(0, image.Size - (sizes.get(parentId) ?? 0)),
        createdAt: Number(found.labels[CREATED_LABEL] ?? image.Created * 1000),
        usedAt: found.namedAt,
        parentId,
        inUse: inUse.has(image.Id),
      };
    }),
  );
  return (await Promise.all(described)).filter((snapshot) => snapshot !== undefined);
}

function list<Answer>(client: EngineClient, path: string, signal?: AbortSignal): Promise<Answer> {
  return client.call(
    'listing images',
    (abortSignal) => client.dial<Answer>({ method: 'GET', path, expected: [200], abortSignal }),
    { signal },
  );
}
