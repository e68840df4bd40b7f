import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmdirSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { withinReserve } from '../../src/engine/container/disk-space.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { byRootOfEngine } from '../needs.ts';
import { shell, startedContainer, testEngine, until } from './engine-fixture.ts';
import { type OwnEngine, ownEngine } from './faults/own-engine.ts';

const MiB = 2 ** 20;
const limit = 200 * MiB;
/** What a sandbox may take beyond its limit before it is ended. */
const late = 64 * MiB;

/** Copies everything, as a workspace is copied. */
const whole = {
  ...({ keeps: () => true, links: 'all', maxEntries: Number.POSITIVE_INFINITY } as const),
  signal: new AbortController().signal,
};

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
    const load = `docker save offsite/base:latest | docker --host ${own.host} load`;
    await promisify(execFile)('sh', ['-c', load]);
    engine = await testEngine({ host: own.host });
  });
  afterAll(async () => {
    await engine?.[Symbol.asyncDispose]();
    await own?.[Symbol.asyncDispose]();
    execFileSync('umount', ['--lazy', folder]);
    rmdirSync(folder);
    rmSync(`${folder}.img`);
  });

  /** The least that was free while the work was done, in bytes and in files. */
  async function leastFree(work: () => Promise<unknown>): Promise<{ bytes: number; files: number }> {
    const least = { bytes: free(), files: statfsSync(folder).ffree };
    const stop = new AbortController();
    const watch = (async () => {
      while (!stop.signal.aborted) {
        least.bytes = Math.min(least.bytes, free());
        least.files = Math.min(least.files, statfsSync(folder).ffree);
        await systemClock.sleep(5);
      }
    })();
    await work().finally(() => stop.abort());
    await watch;
    return least;
  }

  const python = (program: string) => `python3 -c '${program}'`;
  const byDeleted =
    'import os\nwhile True: f = open("f", "wb"); os.unlink("f"); keep.append(f); f.write(bytes(2**22)); f.flush()';

  byRootOfEngine.test.each<[string, string, number?]>([
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
    [
      'files with holes that are written in part',
      python(
        'import os\nn = 0\nwhile True: n += 1; f = os.open(str(n), os.O_RDWR | os.O_CREAT); os.truncate(f, 2**36); [os.pwrite(f, bytes(2**16), at * 2**24) for at in range(999)]; os.close(f)',
      ),
    ],
    [
      'folders with a file of one byte each',
      python('import os\nn = 0\nwhile True: n += 1; os.mkdir(str(n)); open(f"{n}/f", "w").write("x")'),
    ],
    [
      'names of one file',
      python(
        'import os\nn = 0\nwhile True:\n  if n % 60000 == 0: open(f"{n}", "w").close(); of = str(n)\n  n += 1; os.link(of, f"{n:0250}")',
      ),
      // It makes a few thousand names a second.
      limit / 5,
    ],
    [
      'attributes of files',
      python(
        'import os\nn = 0\nwhile True: n += 1; open(str(n), "w").close(); os.setxattr(str(n), "user.a", os.urandom(3900))',
      ),
    ],
  ])('%s: the attack ends within its limit', { timeout: 420_000 }, async (_, attack, most = limit) => {
    await using container = await startedContainer(engine, { diskBytes: most });
    const before = free();
    const least = await leastFree(async () => {
      // A busy machine makes many files slowly.
      const { ended } = await shell(container, attack, { timeoutMs: 300_000 });
      expect(ended).toBe('out-of-disk');
    });
    expect(before - least.bytes).toBeLessThan(most + late);
  });

  byRootOfEngine.test.each([
    ['/dev/shm', 'cat /dev/zero > /dev/shm/big'],
    ['the output of its first process', 'for fd in 1 2; do cat /dev/zero > /proc/1/fd/$fd & done; wait'],
    ['its own output', 'cat /dev/zero'],
  ])('what is written to %s takes no disk', async (_, attack) => {
    await using container = await startedContainer(engine, { diskBytes: limit });
    const before = free();
    const least = await leastFree(() => shell(container, attack, { timeoutMs: 10_000 }));
    expect(before - least.bytes).toBeLessThan(late);
  });

  byRootOfEngine.test('what a service prints, and writes to its memory, takes no disk', async () => {
    const memoryFolders = [{ path: '/memory', maxBytes: limit }];
    const command = ['sh', '-c', 'cat /dev/zero > /memory/big; cat /dev/zero'];
    const before = free();
    const service = { command, env: {}, memoryFolders };
    await using container = await startedContainer(engine, { service, diskBytes: limit });
    const least = await leastFree(async () => {
      const { stdout } = await shell(container, 'sleep 10; stat -c %s /memory/big; cat /proc/*/cmdline');
      expect(stdout.text).toMatch(new RegExp(`^${limit}\n.*cat.*zero`, 's'));
    });
    expect(before - least.bytes).toBeLessThan(late);
  });

  byRootOfEngine.test(
    'empty files take no bytes, and still leave room for those of others',
    async () => {
      await using container = await startedContainer(engine, { diskBytes: limit });
      const attack = python('n = 0\nwhile True: n += 1; open(str(n), "w").close()');
      const least = await leastFree(async () => {
        expect(await shell(container, attack, { timeoutMs: 120_000 })).toMatchObject({
          ended: 'out-of-disk',
        });
      });
      expect(least.files).toBeGreaterThan(statfsSync(folder).files / 20);
    },
    180_000,
  );

  byRootOfEngine.test(
    'a copy takes no more blocks than it may, however small the files are',
    async () => {
      await using from = await startedContainer(engine);
      await using to = await startedContainer(engine);
      const make = 'mkdir -p /work/out && cd /work/out && seq 60000 | split -l 1 -a 4 - f';
      expect(await shell(from, make)).toMatchObject({ exitCode: 0 });
      await shell(to, 'mkdir /work');
      const before = free();
      const least = await leastFree(async () => {
        const copied = from.carryTo(to, '/work/out', { ...whole, maxBytes: 50 * MiB });
        await expect(copied).rejects.toMatchObject({ code: 'ENGINE_TOO_LARGE' });
      });
      // A margin of 64 MiB belongs to the limit of a copy, and what is written until it ends is late.
      expect(before - least.bytes).toBeLessThan(50 * MiB + 2 * late);
    },
    120_000,
  );

  byRootOfEngine.test(
    'a copy leaves the reserve free',
    async () => {
      await using from = await startedContainer(engine);
      await using to = await startedContainer(engine);
      const half = Math.floor((free() / MiB) * 0.55);
      await shell(to, 'mkdir /work');
      await shell(from, `mkdir -p /work/out && head -c ${half}m /dev/urandom > /work/out/big`);
      const least = await leastFree(async () => {
        const copied = from.carryTo(to, '/work/out', { ...whole, maxBytes: 10 * 2 ** 30 });
        await expect(copied).rejects.toMatchObject({ code: 'DISK_FULL', kind: 'infrastructure' });
      });
      expect(least.bytes).toBeGreaterThan(95 * MiB);
    },
    180_000,
  );

  byRootOfEngine.test('an image is not made of holes that would become blocks', async () => {
    await using container = await startedContainer(engine, { diskBytes: limit });
    await shell(container, 'truncate -s 60G sparse');
    const before = free();
    const kept = container.commit({ repository: 'offsite-test', tag: 'sparse', labels: {} });
    await expect(kept).rejects.toMatchObject({ code: 'IMAGE_TOO_LARGE' });
    expect(before - free()).toBeLessThan(MiB);
  });

  byRootOfEngine.test(
    'a build leaves the reserve free',
    async () => {
      const dockerfile = 'FROM offsite/base\nRUN cat /dev/zero > /big\n';
      const build = (signal: AbortSignal) =>
        engine.port.images.build({ name: 'offsite-test:full', dockerfile, signal });
      const least = await leastFree(async () => {
        const built = withinReserve(engine, new AbortController().signal, build);
        await expect(built).rejects.toMatchObject({ code: 'DISK_FULL', kind: 'infrastructure' });
      });
      expect(least.bytes).toBeGreaterThan(50 * MiB);
      await until(() => free() > least.bytes + 100 * MiB);
    },
    180_000,
  );

  byRootOfEngine.test('what is in reserve stays free, whoever fills the disk', async () => {
    await using container = await startedContainer(engine, { diskBytes: 10 * 2 ** 30 });
    const error = await shell(container, 'cat /dev/zero > big').catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'DISK_FULL', kind: 'infrastructure' });
    expect(free()).toBeGreaterThan(95 * MiB);
    await until(async () => (await container.processes()).length === 0);
  });
});
