import { expect, test } from 'vitest';
import { containerOf } from '../../src/engine/container.ts';
import { daemon, shell, startedContainer, testSpec, until } from './engine-fixture.ts';
import { engine, sharedEngine } from './shared-engine.ts';

sharedEngine();

test('processes of every user end, daemons among them, and files stay', async () => {
  await using container = await startedContainer(engine);
  await shell(container, `echo kept > kept; ${daemon('sleep 100')}; sleep 101 > /dev/null 2>&1 &`);
  await shell(container, daemon('sleep 102'), { user: '1234' });
  expect((await container.processes()).map(({ uid }) => uid).sort()).toEqual([0, 0, 1234]);
  expect(await container.killAll()).toBe(container.listsProcesses ? 'killed' : 'restarted');
  expect(await container.processes()).toEqual([]);
  expect((await shell(container, 'cat kept')).stdout.text).toBe('kept\n');
});

test('processes of a hundred users end', async () => {
  await using container = await startedContainer(engine, { pids: 256, user: '0:0' });
  const users =
    'import os, time\nfor uid in range(1000, 1100):\n if os.fork() == 0: os.setuid(uid); time.sleep(600)';
  await shell(container, daemon(`python3 -c '${users}'`));
  await until(async () => (await container.processes()).length === 100);
  await container.killAll();
  expect(await container.processes()).toEqual([]);
});

test('orphans are reaped: zombies do not use up the process limit', async () => {
  await using container = await startedContainer(engine, { pids: 32 });
  const result = await shell(container, 'for i in $(seq 100); do setsid -f true; done; echo alive');
  expect(result.stdout.text).toBe('alive\n');
  const zombies = await shell(container, "grep -l '^State:.Z' /proc/[0-9]*/status | wc -l");
  expect(zombies.stdout.text.trim()).toBe('0');
});

test('where signals cannot be sent, the container is restarted, and its files stay', async () => {
  await using container = await startedContainer(engine);
  await shell(container, `echo kept > kept; ${daemon('sleep 100')}`);
  // A shell that will not kill.
  await container.put([
    { path: 'usr/bin/dash', content: '#!/bin/bash\n[[ $2 == *kill* ]] || exec bash "$@"\n', mode: 0o755 },
  ]);
  expect(await container.killAll()).toBe('restarted');
  expect(await container.processes()).toEqual([]);
  const kept = await container.exec({ argv: ['cat', '/workspace/kept'], timeoutMs: 60_000 });
  expect(kept.stdout.text).toBe('kept\n');
});

test('where the engine cannot list processes, it restarts the container, whatever the inside says', async () => {
  await using container = await startedContainer(engine);
  const { port } = engine;
  const unlisted = { ...port, containers: { ...port.containers, processes: async () => undefined } };
  const spec = await testSpec(engine);
  for (const machine of [{ runtime: { listsProcesses: false, protectsPaths: true } }, {}]) {
    await shell(container, daemon('sleep 100'));
    // A shell that hides processes, in place of the real one.
    await container.put([
      { path: 'usr/bin/dash', content: '#!/bin/bash\n[[ $2 == */proc/* ]] || exec bash "$@"\n', mode: 0o755 },
    ]);
    const same = containerOf(unlisted, container.id, spec, machine);
    expect(await same.processes()).toEqual([]);
    expect(await same.killAll()).toBe('restarted');
    const left = 'for it in /proc/[0-9]*; do tr "\\0" " " < $it/cmdline; done';
    const seen = await container.exec({ argv: ['bash', '-c', left], timeoutMs: 60_000 });
    expect(seen.stdout.text).not.toContain('sleep 100');
    expect(seen.stdout.text).toContain('/offsite-shield/offsite-init-');
  }
});

test('a command that removes all programs has its result, and what it left is ended by a restart', async () => {
  await using container = await startedContainer(engine);
  const result = await shell(container, `${daemon('sleep 100')}; rm -rf /usr/bin /bin; exit 3`);
  expect(result).toMatchObject({ ended: 'exited', exitCode: 3 });
  expect(await container.runScript({ script: 'true', timeoutMs: 60_000 })).toMatchObject({
    ended: 'not-started',
  });
  expect(await container.killAll()).toBe('restarted');
  expect(await engine.port.containers.processes(container.id, 'comm')).toHaveLength(1);
  expect(await shell(container, 'true')).toMatchObject({ ended: 'not-started' });
});
