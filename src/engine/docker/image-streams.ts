import type { Readable } from 'node:stream';
import { startDeadline } from '../../base/deadline.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { registryLayers } from '../../bounds/suite.ts';
import { tarArchive } from '../archive/write-archive.ts';
import type {
  BuildRequest,
  ImportRequest,
  PullOptions,
  PullProgress,
  RegistryLogin,
} from '../port/images.ts';
import type { DockerClient } from './client.ts';
import { type EngineLine, engineLines } from './engine-lines.ts';
import { engineMessage, engineStatus } from './failure.ts';

/** Milliseconds that a build step may print nothing. */
const buildSilenceMs = 300_000;
/** The same for an import: the engine answers only once, after the import. */
const importSilenceMs = 600_000;

/**
 * Pulls an image through the engine. Throws an `OffsiteError` that says why it failed: `IMAGE_REFUSED`, of
 * kind `input`, if a registry said no, else `IMAGE_PULL_FAILED`.
 */
export async function pullImage(
  client: DockerClient,
  name: string,
  { signal, login, onProgress, ...times }: PullOptions = {},
): Promise<void> {
  const { firstWordMs = 15_000, silenceMs = 180_000, totalMs = registryLayers.time.pull } = times;
  using deadline = startDeadline(client.clock, totalMs, signal);
  const layers = new LayerProgress();
  try {
    const stream = await firstWord(client, name, { login, ms: firstWordMs, signal: deadline.signal });
    const options = { purpose: `pull ${name}`, silenceMs, signal: deadline.signal, failure: pullFailure };
    // The pull succeeds if no line is an error and the stream ends.
    for await (const line of engineLines(stream, options)) if (layers.take(line)) onProgress?.(layers.sum());
  } catch (error) {
    if (!deadline.expired()) throw error;
    throw pullFailure(`Could not pull ${name}: it took longer than ${totalMs / 60_000} min`);
  }
}

/** The engine sends its headers together with the first line, once the registry has answered. */
async function firstWord(
  { docker, clock }: DockerClient,
  name: string,
  { login, ms, signal }: { login: RegistryLogin | undefined; ms: number; signal: AbortSignal },
): Promise<Readable> {
  signal.throwIfAborted();
  // The request listens to its signal while its answer streams. A disposed deadline no longer aborts it.
  using deadline = startDeadline(clock, ms, signal);
  try {
    const options = { abortSignal: deadline.signal, ...(login && { authconfig: login }) };
    return (await docker.pull(name, options)) as Readable;
  } catch (cause) {
    signal.throwIfAborted();
    const reason = deadline.expired() ? `no registry answered within ${ms / 1000} s` : engineMessage(cause);
    throw pullFailure(`Could not pull ${name}: ${reason}`, cause);
  }
}

/** What the engine says if a registry does not have an image, or does not give it to this user. */
const refusals =
  /denied|unauthorized|forbidden|manifest unknown|manifest for .* not found|name unknown|not found: manifest|no matching manifest|no basic auth|authentication required|invalid reference format/i;

function pullFailure(message: string, cause?: unknown): OffsiteError {
  if (refusals.test(message) || engineStatus(cause) === 404)
    return new OffsiteError(message, { code: 'IMAGE_REFUSED', kind: 'input', cause });
  return new OffsiteError(message, { code: 'IMAGE_PULL_FAILED', kind: 'infrastructure', cause });
}

export async function buildImage(
  { docker }: DockerClient,
  {
    dockerfile,
    name,
    context = tarArchive([{ name: 'Dockerfile', content: dockerfile }]),
    silenceMs = buildSilenceMs,
    ...request
  }: BuildRequest,
): Promise<void> {
  const { signal, target, args, labels, dockerfilePath, onOutput } = request;
  const purpose = `build ${name}`;
  // Typed as an old-style stream, but it is the HTTP answer.
  const answer = (await docker.buildImage(context, {
    t: name,
    rm: true,
    forcerm: true,
    ...(target !== undefined && { target }),
    ...(args && { buildargs: { ...args } }),
    ...(labels && { labels: { ...labels } }),
    ...(dockerfilePath !== undefined && { dockerfile: dockerfilePath }),
    abortSignal: signal,
  })) as Readable;
  let succeeded = false;
  for await (const line of engineLines(answer, { purpose, silenceMs, signal, failure: notBuilt })) {
    onOutput?.(line.stream ?? line.status ?? '');
    if (line.aux?.ID !== undefined || line.stream?.startsWith('Successfully built')) succeeded = true;
  }
  if (!succeeded) throw imageFailure(`Could not ${purpose}: the engine's answer ended before the build did.`);
}

/** Matches the end of a message only: the failure of a command may contain such words elsewhere. */
const removed =
  /(?:(?:unable to find image|no such image:|unknown parent image id) "?sha256:[0-9a-f]{64}"?|from a previous build: getting top layer info: layer not known)$/i;

/**
 * The classic builder keeps the results of its steps as images without a name. Something else may remove such
 * an image during the build. Then the Dockerfile is not to blame, and another try succeeds.
 */
function notBuilt(message: string): OffsiteError {
  if (removed.test(message)) {
    return new OffsiteError(`${message}: it was removed while the build used it`, {
      code: 'IMAGE_REMOVED',
      kind: 'infrastructure',
    });
  }
  return new OffsiteError(message, { code: 'IMAGE_NOT_BUILT', kind: 'input' });
}

export async function importImage(
  { docker }: DockerClient,
  { root, name, env, command, labels, signal }: ImportRequest,
): Promise<void> {
  const purpose = `import ${name} as an image`;
  const [repo, tag] = name.split(':');
  try {
    const answer = (await docker.importImage(root, {
      repo,
      tag,
      changes: [
        ...Object.entries(env).map(([key, value]) => `ENV ${key}=${value}`),
        `CMD ${JSON.stringify(command)}`,
        ...Object.entries(labels).map(([key, value]) => `LABEL ${key}=${value}`),
      ],
      abortSignal: signal,
    })) as Readable;
    for await (const _ of engineLines(answer, { purpose, silenceMs: importSilenceMs, signal })) {
      // There is one line, the new image's id. The caller finds the image by its name.
    }
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof OffsiteError) throw error;
    throw imageFailure(`Could not ${purpose}.`, error);
  }
}

function imageFailure(message: string, cause?: unknown): OffsiteError {
  return new OffsiteError(message, { code: 'IMAGE_FAILED', kind: 'infrastructure', cause });
}

/** Adds up the layers of an image as they arrive. */
class LayerProgress {
  readonly #layers = new Map<string, PullProgress>();

  /** Whether the line says something new about a layer's download. */
  take({ id, status, progressDetail }: EngineLine): boolean {
    if (id === undefined) return false;
    const known = this.#layers.get(id);
    if (status === 'Download complete' && known) known.bytes = known.total;
    else if (status === 'Downloading' && (known || this.#layers.size < registryLayers.count.layers)) {
      const { current, total } = progressDetail ?? {};
      this.#layers.set(id, { bytes: Number(current) || 0, total: Number(total) || 0 });
    } else return false;
    return true;
  }

  sum(): PullProgress {
    const layers = [...this.#layers.values()];
    const bytes = layers.reduce((sum, layer) => sum + layer.bytes, 0);
    return { bytes, total: layers.reduce((sum, layer) => sum + layer.total, 0) };
  }
}
