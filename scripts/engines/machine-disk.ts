import { existsSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { runHostProgram, withSystemPath } from '../../src/base/host-program.ts';
import type { EngineGround } from './test-engine.ts';

const makingMs = 600_000;

/**
 * The path of a disk with all files of a root, which is made once, beside the root. Nothing may change it.
 */
export async function machineDisk(root: string, { env, signal, during }: EngineGround): Promise<string> {
  const path = `${root}.ext4`;
  if (existsSync(path)) return path;
  const partial = `${path}.${process.pid}.partial`;
  try {
    await during('Making the disk of a virtual machine', () =>
      runHostProgram({
        command: 'mke2fs',
        args: [
          '-q',
          '-t',
          'ext4',
          '-E',
          'lazy_itable_init=1,lazy_journal_init=1',
          '-d',
          root,
          partial,
          '16G',
        ],
        purpose: 'make the disk of a virtual machine',
        env: withSystemPath(env),
        deadlineMs: makingMs,
        signal,
      }),
    );
    await rename(partial, path);
  } finally {
    await rm(partial, { force: true });
  }
  return path;
}
