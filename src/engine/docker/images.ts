import type Docker from 'dockerode';
import { archives } from '../../bounds/sandbox.ts';
import { isEngineFailure } from '../port/failure.ts';
import type { Image, ImagePort, ListedImage } from '../port/images.ts';
import type { DockerClient } from './client.ts';
import { engineStatus } from './failure.ts';
import { buildImage, importImage, pullImage } from './image-streams.ts';

export function dockerImages(client: DockerClient): ImagePort {
  return {
    find: (name, signal) => findImage(client, name, signal),
    list: (signal) => listImages(client, 'all=true', signal),
    listNameless(labels, signal) {
      const filters = JSON.stringify({ dangling: ['true'], label: labels });
      return listImages(client, `filters=${encodeURIComponent(filters)}`, signal);
    },
    async tag(image, name, signal) {
      const colon = name.lastIndexOf(':');
      const [repo, tag] = [name.slice(0, colon), name.slice(colon + 1)];
      const path = `/images/${image}/tag?${new URLSearchParams({ repo, tag })}`;
      await client.ask('naming an image', { method: 'POST', path }, { signal });
    },
    pull: (name, options) => pullImage(client, name, options),
    import: (request) => importImage(client, request),
    save(ids, signal) {
      const names = ids.map((id) => `names=${encodeURIComponent(id)}`).join('&');
      const request = { method: 'GET', path: `/images/get?${names}` } as const;
      // The engine may first write all of it to its own disk.
      return client.askForStream('saving images', request, { signal, timeoutMs: archives.time.transfer });
    },
    async load(body, signal) {
      const request = { method: 'POST', path: '/images/load?quiet=1', body } as const;
      const limits = { signal, timeoutMs: archives.time.transfer };
      const answer = JSON.stringify(await client.ask<unknown>('loading images', request, limits)) ?? '';
      return [...answer.matchAll(/Loaded image[^"]*?(sha256:[0-9a-f]{64})/g)].map(([, id = '']) => id);
    },
    build: (request) => buildImage(client, request),
  };
}

/**
 * The rough form of an image's name; the engine itself is stricter. It answers a path with an empty part or
 * with dots by sending the client elsewhere.
 */
const imageName = /^\w(?!.*\.\.)[\w.:@-]*(?:\/\w[\w.:@-]*)*$/;

async function findImage(
  client: DockerClient,
  name: string,
  signal?: AbortSignal,
): Promise<Image | undefined> {
  if (!imageName.test(name)) return undefined;
  try {
    const found = await client.ask<Docker.ImageInspectInfo>(
      `looking for the image ${name}`,
      { method: 'GET', path: `/images/${encodeURI(name)}/json` },
      { signal },
    );
    const madeAt = Date.parse(found.Created);
    return {
      id: found.Id,
      names: found.RepoTags ?? [],
      digests: found.RepoDigests ?? [],
      arch: found.Architecture,
      platform: [found.Os, found.Architecture, found.Variant].filter(Boolean).join('/'),
      bytes: found.Size,
      madeAt,
      namedAt: Math.max(madeAt, namedAt(found)),
      labels: found.Config?.Labels ?? {},
      user: found.Config?.User ?? '',
      workingDir: found.Config?.WorkingDir ?? '',
      env: Object.fromEntries((found.Config?.Env ?? []).map(nameAndValue)),
      volumes: Object.keys(found.Config?.Volumes ?? {}),
      triggers: found.Config?.OnBuild ?? [],
      ...programOf(found),
    };
  } catch (thrown) {
    // 400: no image can have this name.
    if (isEngineFailure(thrown, 'not-found') || engineStatus(thrown) === 400) return undefined;
    throw thrown;
  }
}

/** For an image of an old builder, engines report the entrypoint as a string, not as a list. */
function programOf({ Config }: Docker.ImageInspectInfo) {
  const { Entrypoint, Cmd, Healthcheck } = (Config ?? {}) as {
    Entrypoint?: string | string[] | null;
    Cmd?: string[] | null;
    Healthcheck?: EngineHealthcheck | null;
  };
  const entrypoint = typeof Entrypoint === 'string' ? [Entrypoint] : (Entrypoint ?? []);
  return {
    entrypoint,
    command: Cmd ?? [],
    healthcheck: healthcheckOf(Healthcheck),
  };
}

/** A health check as engines write it, with times in nanoseconds. */
export interface EngineHealthcheck {
  Test?: string[];
  [nanoseconds: string]: unknown;
}

export function healthcheckOf(check: EngineHealthcheck | null | undefined) {
  if (!check) return undefined;
  const [kind, ...rest] = check.Test ?? [];
  if (kind !== 'CMD' && kind !== 'CMD-SHELL') return undefined;
  // The engine leaves out zeros, which stand for its defaults.
  const millis = (value: unknown) => (typeof value === 'number' && value > 0 ? value / 1e6 : undefined);
  return {
    command: kind === 'CMD' ? rest : rest.join(' '),
    interval: millis(check.Interval),
    timeout: millis(check.Timeout),
    startPeriod: millis(check.StartPeriod),
    retries: typeof check.Retries === 'number' && check.Retries > 0 ? check.Retries : undefined,
  };
}

function nameAndValue(line: string): [name: string, value: string] {
  const end = line.indexOf('=');
  return end === -1 ? [line, ''] : [line.slice(0, end), line.slice(end + 1)];
}

/** Engines report the year 1 for an image without a name, or if they do not record this time. */
function namedAt(image: Docker.ImageInspectInfo): number {
  const { LastTagTime } = (image as { Metadata?: { LastTagTime?: string } }).Metadata ?? {};
  return LastTagTime === undefined ? 0 : Date.parse(LastTagTime);
}

async function listImages(
  client: DockerClient,
  query: string,
  signal: AbortSignal | undefined,
): Promise<ListedImage[]> {
  const path = `/images/json?${query}`;
  const found = await client.ask<Docker.ImageInfo[]>('listing images', { method: 'GET', path }, { signal });
  return found.map(({ Id, RepoTags, ParentId, Size, Labels, Created }) => ({
    id: Id,
    // What some engines report for an image without a name.
    names: (RepoTags ?? []).filter((name) => name !== '<none>:<none>'),
    parentId: ParentId,
    bytes: Size,
    labels: Labels ?? {},
    createdAt: Created * 1000,
  }));
}
