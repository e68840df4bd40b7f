import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { startDeadline } from '../../base/deadline.ts';
import { tarArchive, type WrittenEntry } from '../archive/write-archive.ts';
import type { Capabilities } from '../port/capabilities.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { buildThroughCli, findCli } from './docker-cli.ts';
import { tookTooLong } from './failure.ts';
import type { ImageBuild, ImageBuilder } from './image-builder.ts';

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
      ...{ dockerfile, dockerfilePath, context: archive },
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
): Generator<WrittenEntry> {
  for (const { path, type, mode, size, linkTarget, modifiedAt } of members) {
    const entry = { name: path, mode, modifiedAt: modifiedAt.getTime() };
    // The builder applies this file, so the archive gets one that Offsite writes instead.
    if (path === '.dockerignore') continue;
    if (type === 'folder') yield { ...entry, isFolder: true };
    else if (type === 'symlink') yield { ...entry, linkTarget: linkTarget ?? '' };
    else yield { ...entry, content: { size, bytes: createReadStream(join(folder, path)) } };
  }
  for (const [name, content] of Object.entries(hidden)) yield { name, content };
  const ignored = [ignore, '.dockerignore', ...Object.keys(hidden), ''];
  yield { name: '.dockerignore', content: ignored.join('\n') };
}
