import type Docker from 'dockerode';
import { OffsiteError } from '../offsite-error.ts';
import type { EngineClient } from './connection/engine-client.ts';
import { engineStatus } from './failure.ts';

export interface Image {
  /** `sha256:...`; run by this, since a name may move and a local image has no digest. */
  id: string;
  /** The names it has now. */
  names: string[];
  arch: string;
  bytes: number;
  /** Epoch milliseconds of when it was last given a name, by the engine's clock; when it was made, for one that never was. */
  namedAt: number;
  labels: Record<string, string>;
}

/** The image that a name or id stands for on this engine now, if there is one. Never pulls. One round trip. */
export async function findImage(
  client: EngineClient,
  name: string,
  signal?: AbortSignal,
): Promise<Image | undefined> {
  try {
    const found = await client.call(
      `looking for the image ${name}`,
      (abortSignal) =>
        client.dial<Docker.ImageInspectInfo>({
          method: 'GET',
          path: `/images/${encodeURI(name)}/json`,
          expected: [200],
          abortSignal,
        }),
      { signal },
    );
    return {
      id: found.Id,
      names: found.RepoTags ?? [],
      arch: found.Architecture,
      bytes: found.Size,
      namedAt: Math.max(Date.parse(found.Created), namedAt(found)),
      labels: found.Config?.Labels ?? {},
    };
  } catch (thrown) {
    if (thrown instanceof OffsiteError && engineStatus(thrown.cause) === 404) return undefined;
    throw thrown;
  }
}

/** An image without a name, or of an engine that keeps no such note, was named in the year 1. */
function namedAt(image: Docker.ImageInspectInfo): number {
  const { LastTagTime } = (image as { Metadata?: { LastTagTime?: string } }).Metadata ?? {};
  return LastTagTime === undefined ? 0 : Date.parse(LastTagTime);
}
