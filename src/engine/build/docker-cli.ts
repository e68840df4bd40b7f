import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { execa } from 'execa';
import { OffsiteError } from '../../base/offsite-error.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { notBuilt, tookTooLong } from './failure.ts';
import type { ImageBuild } from './image-builder.ts';

/** A docker CLI that can drive BuildKit. */
export interface DockerCli {
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

export async function buildThroughCli(
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
      ...['--progress', 'plain', '--file', dockerfile, '--tag', name],
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
    if (exitCode !== undefined) throw notBuilt('a step of the Dockerfile failed');
    throw new OffsiteError(`The docker CLI ended without an exit code: ${originalMessage ?? ''}`, {
      code: 'IMAGE_FAILED',
      kind: 'infrastructure',
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
