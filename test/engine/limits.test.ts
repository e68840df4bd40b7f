import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { diskMeasure, processEnds } from '../../src/bounds/sandbox.ts';
import { byRootOfEngine } from '../needs.ts';
import { someOf } from '../short-tests.ts';
import { dockerOf } from './docker-of.ts';
import {
  daemon,
  markerRuns,
  shell,
  startedContainer,
  testEngine,
  testSpec,
  until,
} from './engine-fixture.ts';
import { engine, sharedEngine } from './shared-engine.ts';

sharedEngine();

const eatMemory = 'b = bytearray()\nwhile True: b += bytes(10**7)';

test('a container of a trial has a name that tells which, whatever its case is called', async () => {
  const nameFor = async (caseName: string) => {
    const labels = { 'offsite.batch': 'batch_7fKqAbCdEf', 'offsite.case': caseName, 'offsite.ordinal': '2' };
    await using container = await engine.createContainer(await testSpec(engine, { labels }));
    return (await dockerOf(engine).getContainer(container.id).inspect()).Name.replace(/^\//, '');
  };
  const names = await Promise.all(['greet', 'greet', `ä "$(x)"/../${'long '.repeat(99)}`].map(nameFor));
  expect(names[0]).toMatch(/^offsite-7fKqAbCd-greet-2-[0-9a-f]{8}$/);
  expect(names[2]).toMatch(/^offsite-7fKqAbCd-_x_[\w.]{1,40}-2-[0-9a-f]{8}$/);
  expect(new Set(names).size).toBe(3);
});

describe('memory', () => {
  test('a child that runs out of it is seen, though the parent ends as it likes', async () => {
    await using container = await startedContainer(engine, { memoryBytes: 64 * 2 ** 20 });
    const before = await shell(container, 'exit 137');
    expect(before).toMatchObject({ exitCode: 137, oomKilled: false });
    const bomb = await container.exec({
      argv: ['sh', '-c', `python3 -c '${eatMemory}'; exit 3`],
      timeoutMs: 60_000,
    });
    expect(bomb).toMatchObject({ ended: 'exited', exitCode: 3, oomKilled: true });
    const script = await container.runScript({
      script: `python3 -c '${eatMemory}'\ntrue`,
      timeoutMs: 60_000,
    });
    expect(script.oomKilled).toBe(true);
    expect(script.steps.map(({ exitCode }) => exitCode)).toEqual([137, 0]);
    // A kill counts for the command that it happened in, not for all later ones.
    expect(await shell(container, 'exit 1')).toMatchObject({ exitCode: 1, oomKilled: false });
  });

  test('is told by a program of our own, where nothing outside tells it', async () => {
    await using container = await startedContainer(engine, { memoryBytes: 64 * 2 ** 20 });
    const script = `python3 -c '${eatMemory}'; exec "$(tr -d '\\0' < /proc/1/cmdline)"`;
    expect((await shell(container, script)).stdout.text).toMatch(/^oom_kill 1$/m);
  });

  test('swap is no way out, and the other limits are set as asked', async () => {
    const spec = await testSpec(engine, { cpus: 0.5, pids: 77, nofile: 512 });
    await using container = await engine.createContainer(spec);
    const { HostConfig: host } = await dockerOf(engine).getContainer(container.id).inspect();
    expect(host).toMatchObject({ MemorySwap: host.Memory, NanoCpus: 5e8, PidsLimit: 77 });
    await container.start();
    const limits = await shell(container, 'ulimit -n');
    expect(limits.stdout.text).toBe('512\n');
  });
});

describe('the disk', () => {
  test('who fills it is ended, by a command as by a script, and others are not', async () => {
    await using container = await startedContainer(engine, { diskBytes: 20_000_000 });
    const fill =
      'head -c 15000000 /dev/zero > a; sleep 1.1; echo half; head -c 15000000 /dev/zero > b; sleep 600';
    const filled = await shell(container, fill);
    expect(filled).toMatchObject({ ended: 'out-of-disk', stdout: { text: 'half\n' } });
    expect(await container.processes()).toEqual([]);
    const script = await container.runScript({ script: 'echo a\nsleep 600\necho never', timeoutMs: 60_000 });
    expect(script.ended).toBe('out-of-disk');
    expect(script.steps.map(({ ended }) => ended)).toEqual(['exited', 'out-of-disk']);
    // Where it takes the engine a second to start this, the disk is found full once more.
    await until(async () => (await shell(container, 'rm -f a b')).ended === 'exited');
    expect(await shell(container, 'sleep 1.1')).toMatchObject({ ended: 'exited', exitCode: 0 });
  });

  byRootOfEngine.test(
    'the engine is asked nothing about it, or about what is left, after short commands',
    async () => {
      // The first glance at the disk, or at the container, comes after all commands, however slow the machine is.
      const isLook = (ms: number) => ms === diskMeasure.time.glance || ms === processEnds.time.lossLook;
      const sleep = (ms: number, signal?: AbortSignal) =>
        systemClock.sleep(isLook(ms) ? 600_000 : ms, signal);
      await using own = await testEngine({ clock: { ...systemClock, sleep } });
      const asked = async () => {
        await using container = await startedContainer(own, { diskBytes: 20_000_000 });
        await markerRuns(own);
        const before = own.roundTrips;
        await container.runScript({ script: 'true', timeoutMs: 60_000 });
        // The shell that reported the end ends a moment later, on a slow machine.
        await systemClock.sleep(1000);
        expect(await container.killAll()).toBe('killed');
        return own.roundTrips - before;
      };
      expect(await asked()).toBe(1);
      expect(await asked()).toBe(1);
    },
  );

  test('holes of sparse files take nothing of it', async () => {
    await using container = await startedContainer(engine, { diskBytes: 20_000_000 });
    const sparse = 'for n in $(seq 200); do truncate -s 1T $n; done; sleep 2.5; echo works';
    expect(await shell(container, sparse)).toMatchObject({ ended: 'exited', stdout: { text: 'works\n' } });
    expect(await container.diskUse()).toBeLessThan(2_000_000);
  });

  const deleted = someOf([
    [
      'open',
      'import os, time; f = open("gone", "wb"); os.unlink("gone"); f.write(bytes(60_000_000)); f.flush(); time.sleep(60)',
    ],
    [
      'mapped',
      'import mmap, os, time; f = open("gone", "w+b"); os.unlink("gone"); f.truncate(60_000_000); m = mmap.mmap(f.fileno(), 0); f.close(); m.write(b"x" * 60_000_000); time.sleep(60)',
    ],
  ] as const);
  test.each(deleted)('cannot be filled by a deleted file that is still %s', async (_, program) => {
    await using container = await startedContainer(engine, { diskBytes: 20_000_000 });
    const result = await container.exec({ argv: ['python3', '-c', program], timeoutMs: 30_000 });
    expect(result.ended).toBe('out-of-disk');
    expect(await container.processes()).toEqual([]);
  });

  // An engine keeps some of them in its own folder, and does not count them.
  const etc = someOf(['hosts', 'hostname', 'resolv.conf']);
  test.each(etc)('cannot be filled through /etc/%s either', async (name) => {
    const filling = (['none', 'open'] as const).map(async (network) => {
      await using container = await startedContainer(engine, { network, diskBytes: 20_000_000 });
      return await shell(container, `head -c 40000000 /dev/zero >> /etc/${name}; sleep 60`);
    });
    expect(await Promise.all(filling)).toMatchObject([{ ended: 'out-of-disk' }, { ended: 'out-of-disk' }]);
  });
});

describe('the network', () => {
  test('"none" has the loopback and nothing else', async () => {
    await using container = await startedContainer(engine);
    const result = await shell(container, 'ls /sys/class/net; cat /proc/net/route | wc -l');
    expect(result.stdout.text).toBe('lo\n1\n');
  });

  test("another container's can be shared", async () => {
    await using first = await startedContainer(engine);
    await using second = await startedContainer(engine, { network: { sharedWith: first.id } });
    const namespaces = [first, second].map((container) => shell(container, 'readlink /proc/self/ns/net'));
    const [one, two] = await Promise.all(namespaces);
    expect(one?.stdout.text).toBe(two?.stdout.text);
  });
});

describe('privileges', () => {
  test('"compatible" can install packages and change owners, and no more', async () => {
    await using container = await startedContainer(engine);
    const result = await shell(
      container,
      'touch f; chown 1:1 f && su nobody -s /bin/sh -c "id -u"; mount -t tmpfs t /mnt 2>/dev/null || echo no mount;' +
        'grep CapEff /proc/self/status; grep NoNewPrivs /proc/self/status; grep Seccomp: /proc/self/status',
    );
    expect(result.stdout.text).toBe(
      '65534\nno mount\nCapEff:\t00000000000000cb\nNoNewPrivs:\t1\nSeccomp:\t2\n',
    );
  });

  test('"strict" has no capability and refuses root', async () => {
    await using container = await startedContainer(engine, { security: 'strict', user: '1234:1234' });
    const result = await shell(container, 'id -u; grep CapEff /proc/self/status');
    expect(result.stdout.text).toBe('1234\nCapEff:\t0000000000000000\n');
    await shell(container, daemon('sleep 100'));
    expect(await container.killAll()).toBe(container.listsProcesses ? 'killed' : 'restarted');
    await expect(testSpec(engine, { security: 'strict' }).then(engine.createContainer)).rejects.toMatchObject(
      {
        code: 'ENGINE_CANNOT_ENFORCE',
        kind: 'input',
      },
    );
  });
});

test('what the engine cannot enforce is an error that names it, never left out', async () => {
  const spec = await testSpec(engine, { runtime: 'runsc-unknown', cpus: 4096 });
  await expect(engine.createContainer(spec)).rejects.toMatchObject({
    code: 'ENGINE_CANNOT_ENFORCE',
    message: expect.stringMatching(/runsc-unknown.*4096 processors/),
  });
});
