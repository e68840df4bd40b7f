import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { shieldLibrary } from '../../src/engine/own-files/shield.ts';

/** What a shell prints that has the library, as its commands do not. No sandbox protects it. */
async function printedBy(script: string): Promise<string> {
  const library = shieldLibrary({ x64: 'x86_64', arm64: 'aarch64' }[process.arch as 'x64' | 'arm64']);
  if (library === undefined) throw new Error(`there is none for ${process.arch}`);
  await using folder = await mkdtempDisposable(join(tmpdir(), 'offsite-shield-'));
  const file = join(folder.path, 'shield.so');
  await writeFile(file, library);
  const { all } = await execa('bash', ['-c', `unset LD_PRELOAD; ${script}`], {
    env: { LD_PRELOAD: file, LC_ALL: 'C' },
    all: true,
  });
  return all;
}

test('a command cannot set the limits of the shell that has the library, whoever runs it', async () => {
  const set = 'prlimit --pid $$ --fsize=0; prlimit --pid $$ --nofile=3:3';
  const printed = await printedBy(
    `${set}; echo written > /dev/shm/offsite-$$ && rm /dev/shm/offsite-$$ && echo free`,
  );
  expect(printed.match(/Operation not permitted/g)).toHaveLength(2);
  expect(printed).toContain('free');
});

test('it reads them, and sets its own', async () => {
  const own =
    'python3 -c "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (5, 5)); print(r.getrlimit(r.RLIMIT_FSIZE))"';
  expect(
    await printedBy(`prlimit --pid $$ --nofile --noheadings --output RESOURCE; ulimit -c 0; ${own}`),
  ).toBe('NOFILE\n(5, 5)');
});

test('an unknown machine has none', () => {
  expect(shieldLibrary('riscv64')).toBeUndefined();
});
