import { finished } from 'node:stream/promises';
import { describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { processEnds } from '../../src/bounds/sandbox.ts';
import type { ContainerSpec } from '../../src/engine/container/container-spec.ts';
import type { Container } from '../../src/engine/container.ts';
import { shell, startedContainer, testEngine, until } from './engine-fixture.ts';
import { engine, sharedEngine } from './shared-engine.ts';

sharedEngine();

const outputs = async (container: Container, script: string, user?: string, timeoutMs = 60_000) => {
  const result = await container.runScript({ script, timeoutMs, ...(user && { user }) });
  return {
    ...result,
    steps: result.steps.map(({ command, exitCode, output }) => [command, exitCode, output]),
  };
};

/**
 * All that the kernel and the image give a command, but for what is of one command, and for `Groups`, where
 * Podman leaves out a numeric user's own.
 */
const surroundings = `env | grep -v -e ^OFFSITE_EXEC= -e ^_= | sort
id; pwd; umask; ulimit -a; trap
grep -e ^Cap -e ^NoNew -e ^Seccomp -e ^Uid -e ^Gid -e ^Sig[IBPC] /proc/self/status
cat /proc/self/cgroup /proc/self/oom_score_adj
ls /proc/self/fd | wc -l
cat | wc -c
[ "$(ps -o sid= -p $PPID)" = "$(ps -o sid= -p $$)" ] && echo 'one session'`;

const sandboxes: Record<string, Partial<ContainerSpec>> = {
  'root, "compatible"': { env: { PATH: '/own:/usr/bin:/bin', EMPTY: '', LINES: 'a\nb=c' } },
  'another user, "strict"': { security: 'strict', user: '65534:65534' },
};

describe('a first script, which init starts', () => {
  test.for(Object.entries(sandboxes))(
    'has what a later one has, which the engine starts: %s',
    async ([, spec]) => {
      await using container = await startedContainer(engine, spec);
      const first = await outputs(container, surroundings);
      const second = await outputs(container, surroundings);
      expect(first.steps).toEqual(second.steps);
      expect(first.steps.flat().join('\n')).toContain('NoNewPrivs:\t1');
    },
  );

  test('is started by the engine as another user, and after another command, which may have changed what init began with', async () => {
    const parent = 'id -u; pwd; echo "$HOME"; ps -o ppid= -p $PPID';
    const from = async (container: Container, user?: string) =>
      (await outputs(container, parent, user)).steps[0]?.[2];
    await using container = await startedContainer(engine);
    expect(await from(container)).toMatch(/^0\n\/workspace\n\/root\n +1\n$/);
    expect(await from(container)).toMatch(/^0\n\/workspace\n\/root\n +0\n$/);
    await using other = await startedContainer(engine);
    expect(await from(other, '65534')).toMatch(/^65534\n.* +0\n$/s);
    await using changed = await startedContainer(engine);
    await shell(changed, 'sed -i "s#:/root:#:/tmp:#" /etc/passwd; cd /; rmdir /workspace; mkdir /workspace');
    expect(await from(changed)).toMatch(/^0\n\/workspace\n\/tmp\n +0\n$/);
  });

  test('fails, and does not wait for ever, if the container has ended', async () => {
    await using container = await startedContainer(engine);
    await engine.port.containers.kill(container.id);
    const run = container.runScript({ script: 'true', timeoutMs: 60_000 });
    await expect(run).rejects.toMatchObject({ code: 'ENGINE_CONTAINER_STOPPED' });
  });

  test('fails if somebody who was attached before has closed the input of init', async () => {
    const { lossLook } = processEnds.time;
    let passed = 0;
    const sleep: Clock['sleep'] = (ms, signal) => {
      if (ms === lossLook) passed += 10 * ms;
      return systemClock.sleep(ms === lossLook ? 10 : ms, signal);
    };
    const clock = { ...systemClock, sleep, now: () => systemClock.now() + passed };
    await using own = await testEngine({ clock });
    const codeAfterClose = async () => {
      await using container = await startedContainer(own);
      const stream = await own.port.containers.attach(container.id, { onStderr: () => undefined });
      await finished(stream.resume().end(), { readable: false });
      const run = container.runScript({ script: 'true', timeoutMs: 60_000 });
      return await run.then(
        ({ ended }) => ended,
        ({ code }) => code,
      );
    };
    // An engine may be so slow to close the input that the script comes first.
    const codes: string[] = [];
    await until(async () => codes.push(await codeAfterClose()) > 0 && codes.at(-1) !== 'finished');
    expect(codes.at(-1)).toBe('ENGINE_EXEC_LOST');
  });

  test.for([
    ['a folder that is missing', { cwd: '/missing' }],
    ['a variable that no program can have', { env: { LONG: 'x'.repeat(200_000) } }],
    ['more than init has room for', { env: { LONG: 'x'.repeat(300_000) } }],
  ] as const)('that the kernel does not start is told as the engine tells it: %s', async ([, wrong]) => {
    await using container = await startedContainer(engine);
    const run = () => container.runScript({ script: 'true', timeoutMs: 60_000, ...wrong });
    const told = { ended: 'not-started', message: expect.stringMatching(/missing|too long/) };
    expect(await run()).toMatchObject(told);
    expect(await run()).toMatchObject(told);
  });

  test('may be ended: in time, by a signal, by itself', async () => {
    const ends = {
      'timed-out': { script: 'trap "" TERM; setsid sleep 600 & sleep 600', timeoutMs: 1500 },
      finished: { script: 'echo a; kill -9 $PPID; sleep 600', timeoutMs: 60_000 },
    };
    for (const [ended, request] of Object.entries(ends)) {
      await using container = await startedContainer(engine);
      const result = await container.runScript(request);
      expect(result.ended).toBe(ended);
      expect(await container.processes()).toEqual([]);
      expect((await outputs(container, 'echo again')).steps).toEqual([['echo again', 0, 'again\n']]);
    }
    await using container = await startedContainer(engine);
    expect((await outputs(container, 'echo a\nexit 3\necho b')).steps).toEqual([
      ['echo a', 0, 'a\n'],
      ['exit 3', 3, ''],
    ]);
  });

  test('fails, and is not lost, if a command ends the shell that reports its end', async () => {
    for (const signal of ['HUP', 'KILL']) {
      await using container = await startedContainer(engine);
      const { steps } = await outputs(container, `echo a\nkill -${signal} $PPID; sleep 600\necho b`);
      expect(steps.map(([, exitCode]) => exitCode)).toEqual([0, 137]);
    }
  });

  test('fails if a program takes the marks out of the pipe', async () => {
    await using container = await startedContainer(engine);
    const thief = '(setsid cat /proc/$$/fd/1 > /dev/null &)';
    const { ended, steps } = await outputs(
      container,
      `${thief.repeat(8)}; sleep 1\ntrue\nsleep 1\ntrue`,
      undefined,
      8_000,
    );
    expect(['finished', 'timed-out']).toContain(ended);
    if (ended === 'finished') expect(steps.some(([, exitCode]) => exitCode !== 0)).toBe(true);
  });

  test('leaves no zombie, while it runs or after, and nothing else can talk to init', async () => {
    await using container = await startedContainer(engine);
    const orphans = 'for i in 1 2 3 4 5; do (sh -c "sleep 0.1" &); done';
    const zombies = 'ps -e -o stat= | grep -c Z';
    const { steps } = await outputs(
      container,
      `${orphans}\nsleep 0.5\n${zombies}\ncat /proc/1/environ\ncat /proc/1/fd/1\necho x > /proc/1/fd/1\nhead -c 1 /proc/1/mem\n${orphans}`,
    );
    expect(steps[2]).toEqual([zombies, 1, '0\n']);
    for (const [command, exitCode] of steps.slice(3, 7)) expect([command, exitCode]).not.toContain(0);
    await until(async () => (await shell(container, `sleep 0.2; ${zombies}`)).stdout.text === '0\n');
  });

  test('prints megabytes, and reads an empty input', async () => {
    await using container = await startedContainer(engine);
    const { steps } = await outputs(
      container,
      'yes | head -c 30000000 | tr -d "\\n" | wc -c; cat\nyes | head -c 3000000',
    );
    expect(steps[0]?.slice(1)).toEqual([0, '15000000\n']);
    expect(String(steps[1]?.[2]).length).toBeGreaterThan(2 ** 20);
  });
});
