import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { hostsText } from '../../src/engine/container/hosts-file.ts';
import { ownMachines } from '../../src/engine/own-files/volume.ts';

const machine = { x64: 'x86_64', arm64: 'aarch64' }[process.arch as 'x64' | 'arm64'];
const fileOf = (arch: string, name: string) =>
  fileURLToPath(new URL(`../../src/engine/own-files/${arch}/${name}`, import.meta.url));

/** What a shell prints that has the shield, as its commands do not. No sandbox protects it. */
async function printedBy(script: string): Promise<string> {
  const { all } = await execa('bash', ['-c', `unset LD_PRELOAD; ${script}`], {
    env: { LD_PRELOAD: fileOf(machine, 'shield.so'), LC_ALL: 'C' },
    all: true,
  });
  return all;
}

test('a command cannot set the limits of the shell that has the shield, whoever runs it', async () => {
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

test('the first process writes the lines that a hosts file has elsewhere', () => {
  for (const arch of ownMachines)
    expect(readFileSync(fileOf(arch, 'init')).includes(hostsText), arch).toBe(true);
});
