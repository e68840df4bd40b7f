import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findHostProgram, runHostProgram, withSystemPath } from '../../src/base/host-program.ts';
import { installDebianPackages } from '../../src/base-image/build-from-debian.ts';
import type { EngineGround } from './test-engine.ts';

/** A file system of another Debian, with an engine that this machine's own Debian does not have. */
export interface DebianRoot {
  suite: 'bookworm' | 'trixie' | 'forky' | 'sid';
  packages: readonly string[];
  /** The path of a program that changes the root. It gets the path of the root. */
  setUp?: string;
}

const makingMs = 1_200_000;

/**
 * The folder of the root, which is made once. Roots are kept in `node_modules/.cache/engine-roots`, or in the
 * folder that OFFSITE_ENGINE_ROOTS names. Nothing may be written into it: engines see a copy on top.
 */
export async function debianRoot(
  { suite, packages, setUp }: DebianRoot,
  ground: EngineGround,
): Promise<string> {
  const content = createHash('sha256').update(packages.toSorted().join(' '));
  if (setUp !== undefined) content.update(await readFile(setUp));
  const hash = content.digest('hex').slice(0, 8);
  const folder = join(cacheFolder(ground.env), `${suite}-${hash}`);
  if (existsSync(folder)) return folder;
  const { env, signal } = ground;
  if ((await findHostProgram('mmdebstrap', env)) === undefined) {
    const needed = ['mmdebstrap', 'debian-archive-keyring'];
    await ground.during('Installing mmdebstrap', () =>
      installDebianPackages({ packages: needed, env, signal }),
    );
  }
  const partial = `${folder}.${process.pid}.partial`;
  await mkdir(cacheFolder(env), { recursive: true });
  try {
    await ground.during(`Making a root of Debian ${suite}`, () =>
      runHostProgram({
        command: 'mmdebstrap',
        args: [
          '--mode=root',
          '--variant=minbase',
          '--skip=check/empty',
          // The list of a testing suite is valid for days only. Its signature is checked in any case.
          '--aptopt=Acquire::Check-Valid-Until "false"',
          ...(setUp === undefined ? [] : [`--customize-hook=${setUp}`]),
          `--include=${packages.join(',')}`,
          suite,
          partial,
          ...(env.OFFSITE_DEBIAN_MIRROR ? [env.OFFSITE_DEBIAN_MIRROR] : []),
        ],
        purpose: `make a root of Debian ${suite}`,
        env: withSystemPath(env),
        deadlineMs: makingMs,
        signal,
      }),
    );
    await rename(partial, folder);
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
  return folder;
}

/** Where roots and built engines are kept. */
export function cacheFolder(env: NodeJS.ProcessEnv): string {
  const own = fileURLToPath(new URL('../../node_modules/.cache/engine-roots', import.meta.url));
  return env.OFFSITE_ENGINE_ROOTS || own;
}
