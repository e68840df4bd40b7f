import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { execa } from 'execa';
import { startDeadline } from '../../base/deadline.ts';
import { infrastructureError, inputError, type OffsiteError } from '../../base/offsite-error.ts';
import type { NewEntry } from '../archive/entries.ts';
import { tarArchive } from '../archive/write-archive.ts';
import type { Capabilities, EnginePort } from '../port/engine-port.ts';

/** BuildKit where the engine has it and a docker CLI can reach it; otherwise the classic builder. */
export async function findBuilder(
  port: EnginePort,
  { product, serverVersion }: Capabilities,
  host: string | undefined,
  env: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<ImageBuilder> {
  const cli = host === undefined || product === 'Podman' ? undefined : await findCli(host, env, signal);
  if (!cli)
    return { kind: 'classic', frontend: 'classic', build: (request) => buildClassically(port, request) };
  const frontend = Number.parseInt(serverVersion, 10) < firstCurrent ? 'older' : 'current';
  return { kind: 'buildkit', frontend, build: (request) => buildThroughCli(port, cli, request) };
}

/** Engines from this version on have a BuildKit with here-documents, `COPY --link` and `ADD --checksum`. */
const firstCurrent = 23;

/** Builds with the engine's classic builder, which gets the context as an archive. */
async function buildClassically(
  port: EnginePort,
  { context, dockerfile, args, proxies, timeoutMs, signal, ...request }: ImageBuild,
): Promise<void> {
  // The name is random, so that the Dockerfile hides no file of the context.
  const dockerfilePath = `.offsite-${randomBytes(8).toString('hex')}.Dockerfile`;
  using deadline = startDeadline(port.clock, timeoutMs, signal);
  const archive = tarArchive(contextEntries(context, { [dockerfilePath]: dockerfile }));
  try {
    await port.images.build({
      ...request,
      dockerfile,
      dockerfilePath,
      context: archive,
      args: { ...args, ...proxies },
      silenceMs: timeoutMs,
      signal: deadline.signal,
    });
  } catch (error) {
    signal.throwIfAborted();
    if (deadline.signal.aborted) throw tookTooLong(timeoutMs);
    throw error;
  } finally {
    archive.destroy();
  }
}

/** The members of a context, which all belong to root, with further files that no step can copy. */
function* contextEntries(
  { folder, members, ignore }: ImageBuild['context'],
  hidden: Record<string, string>,
): Generator<NewEntry> {
  for (const { path, type, mode, size, linkTarget, modifiedAt } of members) {
    const entry = { path, mode, modifiedAt: modifiedAt.getTime() };
    // The builder applies this file, so the archive gets one that Offsite writes instead.
    if (path === '.dockerignore') continue;
    if (type === 'folder') yield { ...entry, folder: true };
    else if (type === 'symlink') yield { ...entry, linkTarget: linkTarget ?? '' };
    else yield { ...entry, content: { size, bytes: createReadStream(join(folder, path)) } };
  }
  for (const [path, content] of Object.entries(hidden)) yield { path, content };
  const ignored = [ignore, '.dockerignore', ...Object.keys(hidden), ''];
  yield { path: '.dockerignore', content: ignored.join('\n') };
}

/** A docker CLI that can drive BuildKit. */
interface DockerCli {
  command: string;
  /** The arguments of a build before all others. */
  build: readonly string[];
  env: NodeJS.ProcessEnv;
}

/** Milliseconds for the CLI to say its version, which it asks the engine about. */
const versionMs = 10_000;
/** Versions from this one on need the plugin buildx for BuildKit. */
const firstWithoutBuildKit = 23;

/**
 * The first docker CLI on the PATH that drives BuildKit, with the plugin buildx or by itself, and that the
 * engine takes: newer engines refuse older CLIs.
 */
export async function findCli(
  host: string,
  { DOCKER_CONTEXT: _, ...given }: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<DockerCli | undefined> {
  const env: NodeJS.ProcessEnv = {
    ...given,
    DOCKER_HOST: host,
    DOCKER_BUILDKIT: '1',
    BUILDX_NO_DEFAULT_ATTESTATIONS: '1',
  };
  const ask = async (command: string, args: string[]) => {
    const options = { env, extendEnv: false, stdin: 'ignore' as const, reject: false, timeout: versionMs };
    const { failed, stdout } = await execa(command, args, { ...options, cancelSignal: signal });
    signal?.throwIfAborted();
    return failed ? undefined : stdout;
  };
  for (const folder of new Set((env.PATH ?? '').split(delimiter).filter((one) => one !== ''))) {
    const command = join(folder, 'docker');
    const versions = await ask(command, ['version', '--format', '{{.Client.Version}}, {{.Server.Version}}']);
    const version = /^(\d+)\./.exec(versions ?? '')?.[1];
    if (version === undefined) continue;
    if ((await ask(command, ['buildx', 'version'])) !== undefined) {
      // The builder that is the engine itself, whatever builder the user has chosen.
      return { command, env, build: ['buildx', 'build', '--builder', 'default', '--load'] };
    }
    if (Number(version) < firstWithoutBuildKit) return { command, env, build: ['build'] };
  }
  return undefined;
}

async function buildThroughCli(
  port: EnginePort,
  { command, build, env }: DockerCli,
  { name, labels, target, args, proxies, context, secret, timeoutMs, signal, ...request }: ImageBuild,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'offsite-build-'));
  try {
    const dockerfile = join(folder, 'Dockerfile');
    await writeFile(dockerfile, request.dockerfile);
    // Wins over a `.dockerignore` in the context.
    await writeFile(`${dockerfile}.dockerignore`, context.ignore);
    if (secret) await writeFile(join(folder, 'secret'), secret.content, { mode: 0o600 });
    const given = [
      ...build,
      '--progress',
      'plain',
      '--file',
      dockerfile,
      '--tag',
      name,
      ...Object.entries(labels).flatMap(([key, value]) => ['--label', `${key}=${value}`]),
      ...(target === undefined ? [] : ['--target', target]),
      ...Object.entries(args).flatMap(([key, value]) => ['--build-arg', `${key}=${value}`]),
      // Without values, which may hold passwords: the CLI takes them from its environment.
      ...Object.keys(proxies).flatMap((key) => ['--build-arg', key]),
      ...(secret ? ['--secret', `id=${secret.id},src=${join(folder, 'secret')}`] : []),
      context.folder,
    ];
    const running = execa(command, given, {
      env: { ...env, ...proxies },
      extendEnv: false,
      stdin: 'ignore',
      all: true,
      buffer: false,
      reject: false,
      encoding: 'buffer',
      timeout: timeoutMs,
      cancelSignal: signal,
    });
    running.all.on('data', (chunk: Buffer) => request.onOutput(chunk.toString('utf8')));
    const { failed, timedOut, exitCode, originalMessage } = await running;
    signal.throwIfAborted();
    if (!failed) return;
    if (timedOut) throw tookTooLong(timeoutMs);
    // Throws if the engine is gone, which is not the Dockerfile's fault.
    await port.images.find(name, signal);
    if (exitCode !== undefined) throw inputError('IMAGE_NOT_BUILT', 'a step of the Dockerfile failed');
    throw infrastructureError(
      'IMAGE_FAILED',
      `The docker CLI ended without an exit code: ${originalMessage ?? ''}`,
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** A file or folder of a context. */
interface ContextMember {
  /** Relative to the context, with `/`. */
  path: string;
  type: 'file' | 'folder' | 'symlink';
  mode: number;
  size: number;
  linkTarget?: string;
  modifiedAt: Date;
}

interface ImageBuild {
  name: string;
  labels: Readonly<Record<string, string>>;
  dockerfile: string;
  target: string | undefined;
  args: Readonly<Record<string, string>>;
  /** Values of the arguments for proxies, which every builder knows and none keeps in the image. */
  proxies: Readonly<Record<string, string>>;
  context: {
    folder: string;
    /** The patterns of `.dockerignore`. */
    ignore: string;
    /** What the patterns do not exclude. */
    members: readonly ContextMember[];
  };
  /** What RUN steps may mount by its id. Only BuildKit has secrets. */
  secret: { id: string; content: Buffer } | undefined;
  timeoutMs: number;
  onOutput(text: string): void;
  signal: AbortSignal;
}

export interface ImageBuilder {
  /** `buildkit`: through the docker CLI. `classic`: through the engine's API; it has no secrets or mounts. */
  kind: 'buildkit' | 'classic';
  /** What it understands in Dockerfiles. `older`: BuildKit without here-documents. */
  frontend: 'classic' | 'older' | 'current';
  /**
   * Throws `IMAGE_NOT_BUILT`, an `input` error, if the Dockerfile or one of its steps fails, and
   * `IMAGE_BUILD_TIMEOUT`.
   */
  build(request: ImageBuild): Promise<void>;
}

function tookTooLong(timeoutMs: number): OffsiteError {
  return inputError('IMAGE_BUILD_TIMEOUT', `it was stopped after ${timeoutMs / 1000} s`);
}
