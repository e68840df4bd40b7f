import { archives } from '../../bounds/sandbox.ts';
import { isEngineFailure } from '../port/failure.ts';
import type { Image, ImagePort, ListedImage } from '../port/images.ts';
import type { DockerClient } from './client.ts';
import { engineStatus } from './failure.ts';
import { buildImage, importImage, pullImage } from './image-streams.ts';

export function dockerImages(client: DockerClient): ImagePort {
  const { transfer: timeoutMs } = archives.time;
  return {
    async find(name, signal) {
      if (!imageName.test(name)) return undefined;
      const route = `GET /images/${encodeURI(name)}/json` as const;
      try {
        return imageOf(await client.ask<Inspected>(`looking for the image ${name}`, route, { signal }));
      } catch (thrown) {
        // 400: no image can have this name.
        if (isEngineFailure(thrown, 'not-found') || engineStatus(thrown) === 400) return undefined;
        throw thrown;
      }
    },
    list: (signal) => listImages(client, 'all=true', signal),
    listNameless(labels, signal) {
      const filters = JSON.stringify({ dangling: ['true'], label: labels });
      return listImages(client, `filters=${encodeURIComponent(filters)}`, signal);
    },
    async tag(image, name, signal) {
      const colon = name.lastIndexOf(':');
      const query = new URLSearchParams({ repo: name.slice(0, colon), tag: name.slice(colon + 1) });
      await client.ask('naming an image', `POST /images/${image}/tag?${query}`, { signal });
    },
    pull: (name, options) => pullImage(client, name, options),
    import: (request) => importImage(client, request),
    save(ids, signal) {
      const names = ids.map((id) => `names=${encodeURIComponent(id)}`).join('&');
      // The engine may first write all of it to its own disk.
      return client.askForStream('saving images', `GET /images/get?${names}`, { signal, timeoutMs });
    },
    async load(body, signal) {
      const options = { body, signal, timeoutMs };
      const answer = await client.ask<unknown>('loading images', 'POST /images/load?quiet=1', options);
      const loaded = (JSON.stringify(answer) ?? '').matchAll(/Loaded image[^"]*?(sha256:[0-9a-f]{64})/g);
      return [...loaded].map(([, id = '']) => id);
    },
    build: (request) => buildImage(client, request),
  };
}

/**
 * The rough form of an image's name; the engine itself is stricter. It answers a path with an empty part or
 * with dots by sending the client elsewhere.
 */
const imageName = /^\w(?!.*\.\.)[\w.:@-]*(?:\/\w[\w.:@-]*)*$/;

/** What is used of the engine's answer about an image. */
interface Inspected {
  Id: string;
  RepoTags?: string[] | null;
  RepoDigests?: string[] | null;
  Architecture: string;
  Os: string;
  Variant?: string;
  Size: number;
  Created: string;
  Metadata?: { LastTagTime?: string };
  Config?: {
    Labels?: Record<string, string> | null;
    User?: string;
    WorkingDir?: string;
    Env?: string[] | null;
    Volumes?: Record<string, unknown> | null;
    OnBuild?: string[] | null;
    /** For an image of an old builder, engines report it as a string, not as a list. */
    Entrypoint?: string | string[] | null;
    Cmd?: string[] | null;
    Healthcheck?: EngineHealthcheck | null;
  } | null;
}

function imageOf({ Config, ...found }: Inspected): Image {
  const madeAt = Date.parse(found.Created);
  // Engines report the year 1 for an image without a name, or if they do not record this time.
  const { LastTagTime } = found.Metadata ?? {};
  return {
    id: found.Id,
    names: found.RepoTags ?? [],
    digests: found.RepoDigests ?? [],
    arch: found.Architecture,
    platform: [found.Os, found.Architecture, found.Variant].filter(Boolean).join('/'),
    bytes: found.Size,
    madeAt,
    namedAt: Math.max(madeAt, LastTagTime === undefined ? 0 : Date.parse(LastTagTime)),
    labels: Config?.Labels ?? {},
    user: Config?.User ?? '',
    workingDir: Config?.WorkingDir ?? '',
    env: Object.fromEntries((Config?.Env ?? []).map(nameAndValue)),
    volumes: Object.keys(Config?.Volumes ?? {}),
    triggers: Config?.OnBuild ?? [],
    entrypoint: [Config?.Entrypoint ?? []].flat(),
    command: Config?.Cmd ?? [],
    healthcheck: healthcheckOf(Config?.Healthcheck),
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

/** The same of an image in a list. */
interface Listed extends Pick<Inspected, 'Id' | 'RepoTags' | 'Size'> {
  ParentId: string;
  Labels?: Record<string, string> | null;
  /** In seconds. */
  Created: number;
}

async function listImages(client: DockerClient, query: string, signal?: AbortSignal): Promise<ListedImage[]> {
  const found = await client.ask<Listed[]>('listing images', `GET /images/json?${query}`, { signal });
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
