import { posix } from 'node:path';
import { OffsiteError } from '../../base/offsite-error.ts';
import { PathRoom } from '../../base/path-room.ts';
import { workForValidator } from '../../bounds/grading.ts';
import type { SourceFile } from '../../contract/definition.ts';
import type { Container } from '../../engine/container.ts';
import type { SandboxedRecord } from '../sandboxed-records.ts';
import type { Work, WorkSandbox } from './work.ts';

interface WorkRequestsContext {
  folder: string;
  files: readonly SourceFile[];
  work: WorkSandbox;
  workspace: string;
  signal: AbortSignal;
}

export type AboutWork = Extract<SandboxedRecord, { kind: 'run' | 'read' | 'files' | 'end-work' }>;

/**
 * The answer to a validator's request about the work. Rejects with an `OffsiteError` if the engine fails, and
 * with another error for a failure of the work.
 */
export async function answerAboutWork(
  asked: AboutWork,
  work: Work,
  context: WorkRequestsContext,
): Promise<unknown> {
  const { workspace, signal } = context;
  const { container }: { container: Container } = context.work;
  switch (asked.kind) {
    case 'run':
      await show([asked.command, ...asked.args], context);
      return work.run(asked);
    case 'read':
      return readApart(container, workspace, asked.path, signal);
    case 'files':
      return filesApart(container, workspace, signal);
    case 'end-work':
      return work.end();
  }
}

/**
 * Lets the work read and start those files of the validator that are named in its command line. All others
 * stay closed to it.
 */
async function show(words: readonly string[], context: WorkRequestsContext): Promise<void> {
  const { work, folder, files, signal } = context;
  const named = files.filter(({ path }) => words.includes(`${folder}/${path}`));
  if (named.length === 0) return;
  const opened = named.map(({ path, content }) => ({ path: `${folder}/${path}`, content, mode: 0o755 }));
  await work.container.put(opened, '/', signal);
}

/**
 * Returns the text of a file in another sandbox. The engine reads it, so none of that sandbox's programs can
 * interfere.
 */
async function readApart(
  container: Container,
  workspace: string,
  path: string,
  signal: AbortSignal,
): Promise<string> {
  let at = posix.resolve(workspace, path);
  for (let links = 0; links <= workForValidator.count.links; links += 1) {
    const entry = await firstEntry(container, at, signal);
    if (entry.type === 'file') return entry.text;
    if (entry.linkTarget === undefined) throw new Error(`${path} is not a file`);
    at = posix.resolve(posix.dirname(at), entry.linkTarget);
  }
  throw new Error(`${path} leads through too many links`);
}

/**
 * Paths of everything except folders below the workspace of another sandbox, sorted. Links are listed but not
 * followed.
 */
async function filesApart(container: Container, workspace: string, signal: AbortSignal): Promise<string[]> {
  const paths: string[] = [];
  const room = new PathRoom();
  for await (const { path, type } of container.archive(workspace, signal)) {
    if (type === 'folder') continue;
    if (!room.take(path) || paths.length >= workForValidator.count.files) {
      throw new Error(`the workspace has more files than can be listed (${workForValidator.count.files})`);
    }
    paths.push(path);
  }
  return paths.sort();
}

async function firstEntry(container: Container, path: string, signal: AbortSignal) {
  try {
    for await (const { type, size, linkTarget, content } of container.archive(path, signal)) {
      if (type !== 'file') return { type, linkTarget, text: '' };
      if (size > workForValidator.bytes.file)
        throw new Error(`${path} has more than ${workForValidator.bytes.file} bytes`);
      return { type, linkTarget, text: Buffer.concat(await Array.fromAsync(content())).toString() };
    }
  } catch (error) {
    if (!(error instanceof OffsiteError) || error.code !== 'ENGINE_NOT_FOUND') throw error;
  }
  throw new Error(`ENOENT: no such file or directory, open '${path}'`);
}
