import { posix } from 'node:path';
import { workForValidator } from '../../bounds/grading.ts';
import { PathRoom } from '../../engine/changes/path-room.ts';
import type { Container } from '../../engine/container.ts';
import { OffsiteError } from '../../offsite-error.ts';

/**
 * Returns the text of a file in another sandbox. The engine reads it, so none of that sandbox's programs can
 * interfere.
 */
export async function readApart(
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
export async function filesApart(
  container: Container,
  workspace: string,
  signal: AbortSignal,
): Promise<string[]> {
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
      const chunks: Buffer[] = [];
      for await (const chunk of content()) chunks.push(chunk);
      return { type, linkTarget, text: Buffer.concat(chunks).toString() };
    }
  } catch (error) {
    if (!(error instanceof OffsiteError) || error.code !== 'ENGINE_NOT_FOUND') throw error;
  }
  throw new Error(`ENOENT: no such file or directory, open '${path}'`);
}
