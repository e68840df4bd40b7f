import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmdirSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { byRootOfEngine } from '../needs.ts';
import { shell, startedContainer, testEngine, until } from './engine-fixture.ts';
import { type OwnEngine, ownEngine } from './faults/own-engine.ts';

const MiB = 2 ** 20;
const limit = 200 * MiB;
/** What a sandbox may take beyond its limit before it is ended. */
const late = 64 * MiB;

let folder: string;
let own: OwnEngine;
let engine: Engine;

const free = () => {
  const { bfree, bsize } = statfsSync(folder);
  return bfree * bsize;
};

byRootOfEngine.describe('a file system of 2 GB under an engine of its own', () => {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'offsite-disk-'));
    execFileSync('truncate', ['-s', '2G', `${folder}.img`]);
    execFileSync('mkfs.ext4', ['-q', '-m', '0', `${folder}.img`]);
    execFileSync('mount', ['-o', 'loop', `${folder}.img`, folder]);
    own = await ownEngine({ storageDriver: 'overlay2', args: ['--data-root', folder] });
    await own.start();
    const load = `docker save offsite/base | docker --host ${own.host} load`;
    await promisify(execFile)('sh', ['-c', load]);
    engine = await testEngine({ host: own.host });
  }, 300_000);
  afterAll(async () => {
    await engine?.[Symbol.asyncDispose]();
    await own?.[Symbol.asyncDispose]();
    execFileSync('umount', ['--lazy', folder]);
    rmdirSync(folder);
    rmSync(`${folder}.img`);
  }, 120_000);

  const python = (program: string) => `python3 -c '${program}'`;
  const byDeleted =
    'import os\nwhile True: f = open("f", "wb"); os.unlink("f"); keep.append(f); f.write(bytes(2**22)); f.flush()';

  byRootOfEngine.test.each([
    ['one file', 'cat /dev/zero > big'],
    ['many files', 'n=0; while :; do n=$((n+1)); head -c 100000 /dev/zero > $n; done'],
    ['files of one byte', python('n = 0\nwhile True: n += 1; open(str(n), "w").write("x")')],
    ['deleted files that stay open', python(`keep = []\n${byDeleted}`)],
    [
      'space that is allocated and not written',
      python(
        'import os\nn = 0\nwhile True: n += 1; f = open(str(n), "wb"); os.posix_fallocate(f.fileno(), 0, 2**24)',
      ),
    ],
    ['many processes', 'for n in 1 2 3 4 5 6 7 8; do (setsid cat /dev/zero > $n) & done; wait'],
    ['the file of host names', 'cat /dev/zero >> /etc/hosts'],
  ])('%s: the attack ends within its limit', async (_, attack) => {
    await using container = await startedContainer(engine, { diskBytes: limit });
    const before = free();
    let least = before;
    const stop = new AbortController();
    const watch = (async () => {
      while (!stop.signal.aborted) {
        least = Math.min(least, free());
        await systemClock.sleep(5);
      }
    })();
    const { ended } = await shell(container, attack, { timeoutMs: 60_000 });
    stop.abort();
    await watch;
    expect(ended).toBe('out-of-disk');
    expect(before - least).toBeLessThan(limit + late);
  });

  byRootOfEngine.test('what is in reserve stays free, whoever fills the disk', async () => {
    await using container = await startedContainer(engine, { diskBytes: 10 * 2 ** 30 });
    const error = await shell(container, 'cat /dev/zero > big').catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'DISK_FULL', kind: 'infrastructure' });
    expect(free()).toBeGreaterThan(95 * MiB);
    await until(async () => (await container.processes()).length === 0);
  });
});
