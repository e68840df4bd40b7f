import type { Readable } from 'node:stream';
import { startDeadline } from '../../base/deadline.ts';
import { infrastructureError, inputError, OffsiteError } from '../../base/offsite-error.ts';
import { parseForeignJson } from '../../base/parse-json.ts';
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
  const sumWith = layerSums();
  try {
    const stream = await firstWord(client, name, { login, ms: firstWordMs, signal: deadline.signal });
    const options = { purpose: `pull ${name}`, silenceMs, signal: deadline.signal, failure: pullFailure };
    // The pull succeeds if no line is an error and the stream ends.
    for await (const line of engineLines(stream, options)) {
      const sum = sumWith(line);
      if (sum) onProgress?.(sum);
    }
  } catch (error) {
    if (!deadline.expired()) throw error;
    throw pullFailure(`Could not pull ${name}: it took longer than ${totalMs / 60_000} min`);
  }
}

/** The engine sends its headers together with the first line, once the registry has answered. */
async function firstWord(
  client: DockerClient,
  name: string,
  { login, ms, signal }: { login: RegistryLogin | undefined; ms: number; signal: AbortSignal },
): Promise<Readable> {
  signal.throwIfAborted();
  // The request listens to its signal while its answer streams. A disposed deadline no longer aborts it.
  using deadline = startDeadline(client.clock, ms, signal);
  try {
    const [, repository = name, digest, tag = 'latest'] = /^(.*?)(?:@(.*)|:([^/:@]*))$/.exec(name) ?? [];
    const query = new URLSearchParams({ fromImage: repository, tag: digest ?? tag });
    const encoded = login && Buffer.from(JSON.stringify(login)).toString('base64');
    const headers = { 'X-Registry-Auth': encoded?.replaceAll('+', '-').replaceAll('/', '_') ?? '' };
    return await client.askForStream(`pulling ${name}`, `POST /images/create?${query}`, {
      ...(login && { headers }),
      signal: deadline.signal,
    });
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
    return inputError('IMAGE_REFUSED', message, { cause });
  return infrastructureError('IMAGE_PULL_FAILED', message, { cause });
}

export async function buildImage(
  client: DockerClient,
  {
    dockerfile,
    name,
    context = tarArchive([{ path: 'Dockerfile', content: dockerfile }]),
    silenceMs = buildSilenceMs,
    ...request
  }: BuildRequest,
): Promise<void> {
  const { signal, target, args, labels, dockerfilePath, onOutput } = request;
  const purpose = `build ${name}`;
  const query = new URLSearchParams({ t: name, rm: 'true', forcerm: 'true' });
  if (target !== undefined) query.set('target', target);
  if (args) query.set('buildargs', JSON.stringify(args));
  if (labels) query.set('labels', JSON.stringify(labels));
  if (dockerfilePath !== undefined) query.set('dockerfile', dockerfilePath);
  const options = { body: context, signal, timeoutMs: silenceMs };
  const answer = await client.askForStream(`building ${name}`, `POST /build?${query}`, options);
  let succeeded = false;
  for await (const line of engineLines(answer, { purpose, silenceMs, signal, failure: notBuilt })) {
    onOutput?.(line.stream ?? line.status ?? '');
    if (line.aux?.ID !== undefined || line.stream?.startsWith('Successfully built')) succeeded = true;
  }
  if (!succeeded) throw failed(`Could not ${purpose}: the engine's answer ended before the build did.`);
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
    return infrastructureError('IMAGE_REMOVED', `${message}: it was removed while the build used it`);
  }
  return inputError('IMAGE_NOT_BUILT', message);
}

export async function importImage(
  client: DockerClient,
  { root, name, env, command, labels, signal }: ImportRequest,
): Promise<void> {
  const purpose = `import ${name} as an image`;
  const [repo, tag] = name.split(':');
  const query = new URLSearchParams({ fromSrc: '-', repo: repo ?? '', tag: tag ?? '' });
  for (const [key, value] of Object.entries(env)) query.append('changes', `ENV ${key}=${value}`);
  query.append('changes', `CMD ${JSON.stringify(command)}`);
  for (const [key, value] of Object.entries(labels)) query.append('changes', `LABEL ${key}=${value}`);
  const options = { body: root, signal, timeoutMs: importSilenceMs };
  const doing = `importing ${name} as an image`;
  const answer = await client.askForStream(doing, `POST /images/create?${query}`, options);
  for await (const _ of engineLines(answer, { purpose, silenceMs: importSilenceMs, signal })) {
    // There is one line, the new image's id. The caller finds the image by its name.
  }
}

/** Adds up the layers of an image: returns a sum for each line that says something new about a download. */
function layerSums(): (line: EngineLine) => PullProgress | undefined {
  const layers = new Map<string, PullProgress>();
  const sum = (of: keyof PullProgress) => [...layers.values()].reduce((all, layer) => all + layer[of], 0);
  return ({ id, status, progressDetail }) => {
    if (id === undefined) return undefined;
    const known = layers.get(id);
    if (status === 'Download complete' && known) known.bytes = known.total;
    else if (status === 'Downloading' && (known || layers.size < registryLayers.count.layers)) {
      const { current, total } = progressDetail ?? {};
      layers.set(id, { bytes: Number(current) || 0, total: Number(total) || 0 });
    } else return undefined;
    return { bytes: sum('bytes'), total: sum('total') };
  };
}

/** One line of the engine's stream while it pulls, builds or imports. */
export interface EngineLine {
  status?: string;
  stream?: string;
  error?: string;
  errorDetail?: { message?: string };
  aux?: { ID?: string };
  /** In a pull: the layer that the line is about. */
  id?: string;
  progressDetail?: { current?: number; total?: number };
}

interface EngineLinesOptions {
  /** What the engine is doing, for errors: `pull node:24`. */
  purpose: string;
  /** How long the stream may be silent, in milliseconds. */
  silenceMs: number;
  signal?: AbortSignal | undefined;
  /** The error of a line that reports a failure. Default: an infrastructure error. */
  failure?: (message: string) => OffsiteError;
}

/**
 * Yields every line of such a stream to its end. The engine answers 200 before the work begins, so a failure
 * is a line too, often the last. This throws it as an infrastructure error, like a silent, cut or unreadable
 * stream. An abort throws the signal's reason.
 */
export async function* engineLines(
  stream: Readable,
  options: EngineLinesOptions,
): AsyncGenerator<EngineLine> {
  const { purpose, silenceMs, signal, failure = failed } = options;
  signal?.throwIfAborted();
  const silence = setTimeout(
    () => stream.destroy(failed(`Could not ${purpose}: the engine said nothing for ${silenceMs / 1000} s.`)),
    silenceMs,
  );
  const abort = () => stream.destroy(signal?.reason);
  signal?.addEventListener('abort', abort, { once: true });
  let seen = 0;
  try {
    for await (const text of textLines(stream)) {
      silence.refresh();
      if (text.trim() === '') continue;
      seen += 1;
      yield readLine(text, purpose, failure);
    }
    if (seen === 0) throw failed(`Could not ${purpose}: the engine's answer was empty.`);
  } catch (error) {
    if (error instanceof OffsiteError || signal?.aborted) throw error;
    throw failed(`Could not ${purpose}: the engine's answer was cut off.`, error);
  } finally {
    clearTimeout(silence);
    signal?.removeEventListener('abort', abort);
    stream.destroy();
  }
}

/** The lines of a stream as they arrive, and at last what follows the last one. */
export async function* textLines(stream: Readable): AsyncGenerator<string> {
  stream.setEncoding('utf8');
  let rest = '';
  for await (const chunk of stream) {
    const pieces = (rest + chunk).split('\n');
    rest = pieces.pop() ?? '';
    yield* pieces;
  }
  yield rest;
}

function readLine(text: string, purpose: string, failure: (message: string) => OffsiteError): EngineLine {
  let line: EngineLine;
  try {
    line = parseForeignJson(text) as EngineLine;
  } catch (cause) {
    throw failed(
      `Could not ${purpose}: the engine answered "${text.slice(0, 200)}", which is not JSON.`,
      cause,
    );
  }
  const problem = line.errorDetail?.message ?? line.error;
  if (problem !== undefined) throw failure(`Could not ${purpose}: ${problem}`);
  return line;
}

function failed(message: string, cause?: unknown): OffsiteError {
  return infrastructureError('IMAGE_FAILED', message, { cause });
}
