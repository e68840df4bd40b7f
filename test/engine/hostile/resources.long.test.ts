import { describe, expect, test } from 'vitest';
import { shell, startedContainer, until } from '../engine-fixture.ts';
import { engine, sharedEngine } from '../shared-engine.ts';

const mebibyte = 2 ** 20;

sharedEngine();

test('a gibibyte of output costs this process a fraction of it in memory, and is counted to the byte', async () => {
  await using container = await startedContainer(engine);
  let before = process.memoryUsage.rss();
  let most = 0;
  let seen = 0;
  const result = await container.exec({
    argv: ['head', '-c', String(2 ** 30), '/dev/zero'],
    timeoutMs: 170_000,
    onOutput: (_, bytes) => {
      seen += bytes.length;
      // What the first megabytes take (buffers, compiled code) is not growth.
      if (seen < 32 * mebibyte) before = process.memoryUsage.rss();
      else most = Math.max(most, process.memoryUsage.rss() - before);
    },
  });
  expect(result).toMatchObject({ ended: 'exited', exitCode: 0 });
  expect(result.stdout.totalBytes).toBe(2 ** 30);
  expect(seen).toBe(2 ** 30);
  expect(most).toBeLessThan(256 * mebibyte);
});

describe('a fork bomb', () => {
  test('whose children leave their session is held and ended, while another container works on', async () => {
    await using bombed = await startedContainer(engine, { pids: 64, cpus: 0.5 });
    await using calm = await startedContainer(engine);
    const bomb = bombed.exec({
      argv: [
        'bash',
        '-c',
        'b() { while :; do setsid -f bash -c "$(declare -f b); b" 2> /dev/null; done; }; b',
      ],
      timeoutMs: 1_000,
    });
    expect(await shell(calm, 'echo fine')).toMatchObject({ exitCode: 0 });
    expect((await bomb).ended).toBe('timed-out');
    expect(await bombed.processes()).toEqual([]);
    expect(await shell(bombed, 'true')).toMatchObject({ ended: 'exited', exitCode: 0 });
  });
});

describe('a command that leaves its container without a shell', () => {
  const damaging = (script: string) => ['python3', '-c', `import os, subprocess\n${script}\nos._exit(4)`];
  const hungry = `subprocess.run(['python3', '-c', 'bytearray(2**30)'])`;
  const shellGone = `os.rename('/bin/sh', '/bin/gone')`;

  test('is seen to have run out of memory', async () => {
    await using container = await startedContainer(engine, { memoryBytes: 64 * mebibyte });
    const result = await container.exec({ argv: damaging(`${hungry}\n${shellGone}`), timeoutMs: 60_000 });
    expect(result).toMatchObject({ ended: 'exited', exitCode: 4, oomKilled: true });
    const next = await container.exec({ argv: damaging('pass'), timeoutMs: 60_000 });
    expect(next, 'the same kill is not told twice').toMatchObject({ exitCode: 4, oomKilled: false });
  });

  test('and had memory enough is not said to have run out of it', async () => {
    await using container = await startedContainer(engine);
    const result = await container.exec({ argv: damaging(shellGone), timeoutMs: 60_000 });
    expect(result).toMatchObject({ ended: 'exited', exitCode: 4, oomKilled: false });
  });
});

describe('filling', () => {
  test('/dev/shm ends at its own size', async () => {
    await using container = await startedContainer(engine);
    const result = await shell(container, 'cat /dev/zero > /dev/shm/fill; stat -c %s /dev/shm/fill');
    expect(result.stderr.text).toContain('No space left');
    expect(Number(result.stdout.text)).toBeLessThanOrEqual(64 * mebibyte);
  });

  test('/dev/shm counts as memory: where the limit is lower, the writer is killed and that is seen', async () => {
    await using container = await startedContainer(engine, { memoryBytes: 32 * mebibyte });
    const result = await shell(container, '(cat /dev/zero > /dev/shm/fill); rm /dev/shm/fill; exit 4');
    // The kernel chooses the process to kill: the writer (4), the shell, or even the container's init.
    expect(result).toMatchObject({ ended: 'exited', oomKilled: true });
    expect([4, 137]).toContain(result.exitCode);
  });

  test('/dev/shm and leaving it full, so that no other process has room, hides nothing', async () => {
    await using container = await startedContainer(engine, { memoryBytes: 32 * mebibyte });
    const result = await shell(container, 'cat /dev/zero > /dev/shm/fill; exit 4');
    expect(result).toMatchObject({ ended: 'exited', oomKilled: true });
  });

  test.each(['/', '/tmp', '/workspace', '/var/tmp'])(
    '%s ends the command, and removing its files fixes it',
    async (folder) => {
      await using container = await startedContainer(engine, { diskBytes: 30 * mebibyte });
      const fill = await shell(container, `head -c ${60 * mebibyte} /dev/zero > ${folder}/fill; sleep 600`);
      expect(fill.ended).toBe('out-of-disk');
      expect(await container.processes()).toEqual([]);
      // Where it takes the engine a second to start this, the disk is found full once more.
      await until(async () => (await shell(container, `rm -f ${folder}/fill`)).ended === 'exited');
      expect(await shell(container, 'sleep 1.1')).toMatchObject({ exitCode: 0 });
    },
  );
});

test('a path that is too long hides no excess, and is not the fault of the engine', async () => {
  await using container = await startedContainer(engine, { diskBytes: 30 * mebibyte });
  const deep = `import os
os.chdir('/var/tmp')
for _ in range(60): os.mkdir('x' * 200); os.chdir('x' * 200)
open('file', 'w').write('deep')`;
  const fill = `head -c ${60 * mebibyte} /dev/zero > /var/tmp/fill; sleep 600`;
  const result = await shell(container, `python3 -c "${deep}"; ${fill}`).catch((error: unknown) => error);
  // Some engines measure it, and others cannot.
  expect([{ ended: 'out-of-disk' }, { code: 'ENGINE_CONTAINER_DAMAGED' }]).toContainEqual(
    result instanceof Error
      ? { code: (result as { code?: string }).code }
      : { ended: (result as { ended: string }).ended },
  );
});

describe('files that come and go while the engine measures', () => {
  const churn = `for n in 1 2 3; do
    (while :; do mkdir /var/tmp/$n; (cd /var/tmp/$n; seq 3000 | xargs touch; seq 3000 | xargs rm); rmdir /var/tmp/$n; done) &
  done 2> /dev/null`;

  test('fail no command', async () => {
    await using container = await startedContainer(engine, { diskBytes: 100 * mebibyte });
    const working = shell(container, `${churn}\nsleep 8; kill -9 0`);
    for (let beside = 0; beside < 30; beside++)
      expect(await shell(container, 'sleep 0.1; echo works')).toMatchObject({
        exitCode: 0,
        stdout: { text: 'works\n' },
      });
    expect(await working).toMatchObject({ ended: 'exited', exitCode: 137 });
    expect(await container.processes()).toEqual([]);
  });

  test('hide no excess', async () => {
    await using container = await startedContainer(engine, { diskBytes: 30 * mebibyte });
    const fill = `head -c ${60 * mebibyte} /dev/zero > /var/tmp/fill`;
    expect((await shell(container, `${churn}\n${fill}; sleep 600`)).ended).toBe('out-of-disk');
    expect(await container.processes()).toEqual([]);
  });
});

test('output cut in the middle of a character shows no damaged character, at any cap', async () => {
  await using container = await startedContainer(engine);
  for (const capBytes of [101, 102, 103, 104]) {
    const result = await container.exec({
      argv: ['python3', '-c', 'print("€😀ü" * 500, end="")'],
      capBytes,
      timeoutMs: 60_000,
    });
    expect(result.stdout).toMatchObject({ truncated: true, totalBytes: 4_500 });
    expect(result.stdout.text).not.toContain('\ufffd');
    expect(result.stdout.bytes.length).toBe(capBytes);
  }
});
