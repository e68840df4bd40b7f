import { posix } from 'node:path';
import { OffsiteError } from '../../base/offsite-error.ts';
import { rewards } from '../../bounds/tasks.ts';
import type { Container } from '../../engine/container.ts';
import type { TestReading } from '../../suite/case-tests.ts';
import { type Rewards, readRewards } from '../../tasks/harbor/reward.ts';

/**
 * The rewards that tests wrote, or why there are none. Call it when nothing runs in the sandbox. A file is
 * not read through a link: that could lead to something that the agent wrote.
 */
export async function writtenRewards(
  container: Container,
  { json, text }: Extract<TestReading, { kind: 'reward-files' }>,
  signal: AbortSignal,
): Promise<Rewards> {
  try {
    return readRewards({
      json: await fileAt(container, json, signal),
      text: await fileAt(container, text, signal),
    });
  } catch (error) {
    if (error instanceof NotReadable) return { kind: 'none', problem: error.message };
    throw error;
  }
}

export class NotReadable extends Error {}

/**
 * The content of a file that tests wrote; undefined if there is none. Throws {@link NotReadable} for anything
 * but a file in folders, and for one that is too large.
 */
export async function fileAt(
  container: Container,
  path: string,
  signal: AbortSignal,
  maxBytes: number = rewards.bytes.file,
): Promise<Buffer | undefined> {
  const name = posix.basename(path);
  for (let folder = posix.dirname(path); folder !== '/'; folder = posix.dirname(folder)) {
    if ((await container.kindOf(folder, signal)) !== 'folder')
      throw new NotReadable(`after the tests, ${folder} is not a folder`);
  }
  try {
    for await (const { type, content } of container.archive(path, signal, maxBytes)) {
      if (type !== 'file') throw new NotReadable(`${name} is not a regular file`);
      const pieces: Buffer[] = [];
      for await (const piece of content()) pieces.push(Buffer.from(piece));
      return Buffer.concat(pieces);
    }
  } catch (error) {
    if (!(error instanceof OffsiteError)) throw error;
    if (error.code === 'ENGINE_NOT_FOUND') return undefined;
    if (error.code !== 'ENGINE_TOO_LARGE') throw error;
    throw new NotReadable(`${name} is larger than the limit of ${maxBytes / 1024} KiB`);
  }
  return undefined;
}
