import { suiteFiles } from '../../bounds/suite.ts';
import type { ContainerSpec } from '../../engine/container/container-spec.ts';
import type { Container } from '../../engine/container.ts';
import type { Engine } from '../../engine/engine.ts';
import type { Image } from '../../engine/port/images.ts';
import { baseEnvironment } from '../environment.ts';

interface ImageContents {
  /** Whether it has the user that commands run as. */
  user: boolean;
  shell: boolean;
  bash: boolean;
  node: boolean;
}

/**
 * Which of the things that trials need are in an image. Looks at its files and starts nothing. Some round
 * trips.
 */
export async function contentsOf(
  engine: Engine,
  spec: ContainerSpec,
  { env }: Image,
  signal: AbortSignal,
): Promise<ImageContents> {
  await using container = await engine.createContainer(spec, signal);
  const isThere = async (path: string) => (await container.kindOf(path, signal)) === 'other';
  const folders = new Set(
    baseEnvironment({ env })
      .PATH?.split(':')
      .filter((one) => one.startsWith('/')),
  );
  const isOnPath = async (name: string) => {
    for (const folder of folders) if (await isThere(`${folder}/${name}`)) return true;
    return false;
  };
  const [user = ''] = spec.user?.split(':') ?? [];
  return {
    user: /^\d*$/.test(user) || (await hasUser(container, user, signal)),
    shell: await isThere('/bin/sh'),
    bash: await isOnPath('bash'),
    node: await isOnPath('node'),
  };
}

/**
 * Whether `/etc/passwd` has a user of this name. True if the file is not a regular one, because then only the
 * engine can say.
 */
async function hasUser(container: Container, name: string, signal: AbortSignal): Promise<boolean> {
  const path = '/etc/passwd';
  if ((await container.kindOf(path, signal)) !== 'other') return false;
  const pieces: Buffer[] = [];
  for await (const { type, content } of container.archive(path, signal, suiteFiles.bytes.file)) {
    if (type !== 'file') return true;
    for await (const piece of content()) pieces.push(Buffer.from(piece));
  }
  const lines = Buffer.concat(pieces).toString('utf8').split('\n');
  return lines.some((line) => line.startsWith(`${name}:`));
}
