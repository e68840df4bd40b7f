import { chmodSync, mkdirSync, mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { main } from '../cli/offsite.ts';
import { type Block, blocksOf, pages } from './blocks.ts';

const isStep = ({ words }: Block) => words.has('run') || words.has('file');
const tutorials = pages.filter((page) => blocksOf(page).some(isStep));

/** As one script: files are written where the reader writes them, and a command that fails ends it. */
function scriptOf(steps: readonly Block[], folder: string): string {
  return steps
    .map(({ words, content }, index) => {
      const file = words.get('file');
      if (file === undefined) return content;
      const source = join(folder, `file-${index}`);
      writeFileSync(source, content);
      return `mkdir -p "${dirname(file)}" && cp "${source}" "${file}"`;
    })
    .join('\n');
}

test('there is a page whose examples are run', () => {
  expect(tutorials).toContain('docs/start.md');
});

test.each(tutorials)(
  'the examples of %s run, one after another, as they are written',
  { timeout: 300_000 },
  async (page) => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'offsite-tutorial-'));
    const bin = join(folder.path, 'bin');
    mkdirSync(bin);
    writeFileSync(join(bin, 'offsite'), `#!/bin/sh\nexec "${process.execPath}" "${main}" "$@"\n`);
    chmodSync(join(bin, 'offsite'), 0o755);
    const home = join(folder.path, 'home');
    mkdirSync(home);
    const steps = blocksOf(page).filter(isStep);
    const ran = await execa('bash', ['-euxo', 'pipefail', '-c', scriptOf(steps, folder.path)], {
      cwd: home,
      env: { HOME: home, OFFSITE_HOME: join(folder.path, 'data'), PATH: `${bin}:${process.env.PATH}` },
      reject: false,
      stdin: 'ignore',
      all: true,
    });
    expect(ran.exitCode, ran.all).toBe(0);
  },
);
