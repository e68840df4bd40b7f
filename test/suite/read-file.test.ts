import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readFile } from '../../src/suite/read-file.ts';

/** Exchanges the folder `way` with a link to the folder outside, as fast as it can. */
const swapper = `
  const { renameSync } = require('node:fs');
  process.chdir(process.argv[1]);
  console.log('swapping');
  for (const end = Date.now() + 20_000; Date.now() < end; ) {
    renameSync('way', 'own');
    renameSync('link', 'way');
    renameSync('way', 'link');
    renameSync('own', 'way');
  }`;

test('a file that is exchanged while it is read is never read from outside', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-race-'));
  const suite = join(folder, 'suite');
  for (const [place, content] of [
    [join(suite, 'way'), 'inside'],
    [join(folder, 'outside'), 'outside'],
  ] as const) {
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, 'file'), content);
  }
  symlinkSync(join(folder, 'outside'), join(suite, 'link'));
  const swapping = spawn(process.execPath, ['-e', swapper, suite], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    await once(swapping.stdout, 'data');
    const seen = new Map<string, number>();
    const count = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1);
    for (const end = Date.now() + 1_000; Date.now() < end; ) {
      try {
        count(
          readFile(join(suite, 'way', 'file'), { reach: { within: [suite], except: [] } }).content.toString(),
        );
      } catch (error) {
        count(/outside the suite/.test(String(error)) ? 'refused' : 'gone');
      }
    }
    expect(seen.get('inside')).toBeGreaterThan(0);
    expect(seen.get('refused')).toBeGreaterThan(0);
    expect(seen.get('outside')).toBeUndefined();
  } finally {
    swapping.kill();
    rmSync(folder, { recursive: true, force: true });
  }
});
