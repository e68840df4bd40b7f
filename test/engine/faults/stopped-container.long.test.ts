import { expect, test } from 'vitest';
import { containerOf } from '../../../src/engine/container.ts';
import { byRootOfEngine } from '../../needs.ts';
import { dockerOf } from '../docker-of.ts';
import { killFirstProcess, startedContainer, testSpec, until, untilFile } from '../engine-fixture.ts';
import { engine, sharedEngine } from '../shared-engine.ts';

sharedEngine();

const lost = { name: 'OffsiteError', kind: 'infrastructure' };

test('a command whose container is killed from outside is an infrastructure error', async () => {
  await using container = await startedContainer(engine);
  let killed: Promise<unknown> | undefined;
  const command = container.exec({
    argv: ['sh', '-c', 'echo begun; sleep 600'],
    timeoutMs: 60_000,
    onOutput: () => {
      killed ??= dockerOf(engine).getContainer(container.id).kill();
    },
  });
  await expect(command).rejects.toMatchObject(lost);
  await killed;
});

test('and its script too, which is no failed script', async () => {
  await using container = await startedContainer(engine);
  const script = container.runScript({ script: ': > /var/tmp/begun\nsleep 600', timeoutMs: 60_000 });
  const outcome = expect(script).rejects.toMatchObject(lost);
  await untilFile(engine, '/var/tmp/begun');
  await dockerOf(engine).getContainer(container.id).kill();
  await outcome;
});

test('a command that is killed by what runs inside has a result', async () => {
  await using container = await startedContainer(engine);
  const command = await container.exec({ argv: ['sh', '-c', 'kill -9 $$'], timeoutMs: 60_000 });
  expect(command).toMatchObject({ ended: 'exited', exitCode: 137 });
});

test('commands that are about to start when their container is killed are not said to be unable to start', async () => {
  for (let round = 0; round < 4; round += 1) {
    await using container = await startedContainer(engine);
    const running = new AbortController();
    const outcomes = new Set<string>();
    // The engine notes the end some time after it, and meanwhile passes on what its runtime says.
    const again = async (start: () => Promise<{ ended: string }>) => {
      while (!running.signal.aborted)
        outcomes.add(
          await start().then(
            ({ ended }) => ended,
            ({ kind }) => kind,
          ),
        );
    };
    const starting = [
      again(() => container.exec({ argv: ['true'], timeoutMs: 60_000 })),
      again(() => container.exec({ argv: ['true'], timeoutMs: 60_000 })),
      again(() => container.runScript({ script: 'true', timeoutMs: 60_000 })),
    ];
    await dockerOf(engine).getContainer(container.id).kill();
    await until(() => outcomes.has('infrastructure'));
    running.abort();
    await Promise.all(starting);
    expect([...outcomes]).not.toContain('not-started');
  }
});

/** A container as one whose processes can end it, such as one with a kernel of its own. */
async function endableContainer() {
  const started = await startedContainer(engine);
  const parts = { runtime: { listsProcesses: false, protectsPaths: true } };
  return containerOf(engine.port, started.id, await testSpec(engine), parts);
}

/** Makes a file and sleeps. */
const sleeps = (file: string) => ({
  argv: ['sh', '-c', `echo begun; : > /var/tmp/${file}; sleep 600`],
  timeoutMs: 60_000,
});
const sleepingScript = { script: ': > /var/tmp/script\nsleep 600', timeoutMs: 60_000 };
const scriptKilled = { steps: [{ exitCode: 0 }, { ended: 'exited', exitCode: 137 }] };
const haveBegun = (...files: string[]) =>
  Promise.all(files.map((file) => untilFile(engine, `/var/tmp/${file}`)));
const damaged = { ...lost, code: 'ENGINE_CONTAINER_DAMAGED' };
const killedInside = { ended: 'exited', exitCode: 137 };

test('a container that could have ended itself, and is killed from outside, has no result', async () => {
  await using container = await endableContainer();
  const command = container.exec({ ...sleeps('command'), mayEndContainer: true });
  // Where an engine does not say who ended a container, it counts as the agent.
  const outcome = engine.port.containers.events
    ? expect(command).rejects.toMatchObject({ ...lost, code: 'ENGINE_EXEC_LOST' })
    : expect(command).resolves.toMatchObject(killedInside);
  await haveBegun('command');
  await dockerOf(engine).getContainer(container.id).kill();
  await outcome;
});

// From outside: nothing inside can end the first process with runc.
byRootOfEngine.test(
  'one that ends itself kills the commands of agents, and is damaged for others',
  async () => {
    await using container = await endableContainer();
    expect(await container.killAll()).toBe('restarted');
    const outcomes = Promise.allSettled([
      container.exec({ ...sleeps('agents'), mayEndContainer: true }),
      container.runScript({ ...sleepingScript, mayEndContainer: true }),
      container.exec(sleeps('others')),
    ]);
    await haveBegun('agents', 'script', 'others');
    await killFirstProcess(engine, container.id);
    expect(await outcomes).toMatchObject([
      { value: { ...killedInside, stdout: { text: 'begun\n' } } },
      { value: { ended: 'finished', devicesIntact: false, ...scriptKilled } },
      { reason: damaged },
    ]);
    // Nothing begins in it before it is started again.
    const next = container.exec({ argv: ['true'], timeoutMs: 60_000, mayEndContainer: true });
    await expect(next).rejects.toMatchObject(damaged);

    expect(await container.killAll()).toBe('restarted');
    const left = await container.exec({ argv: ['ls', '/var/tmp'], timeoutMs: 60_000 });
    expect(left).toMatchObject({
      ended: 'exited',
      exitCode: 0,
      stdout: { text: 'agents\nothers\nscript\n' },
    });
  },
);

test('a restart kills the commands that run meanwhile, whoever they belong to', async () => {
  await using container = await endableContainer();
  const commands = [
    container.exec(sleeps('others')),
    container.exec({ ...sleeps('agents'), mayEndContainer: true }),
    container.runScript(sleepingScript),
  ];
  await haveBegun('others', 'agents', 'script');
  expect(await container.killAll()).toBe('restarted');
  expect(await Promise.all(commands)).toMatchObject([killedInside, killedInside, scriptKilled]);
});

/** Without the variable that tells its processes from those of other commands, only a restart ends it. */
const untagged = (timeoutMs: number) => ({ argv: ['env', '-i', 'sleep', '600'], timeoutMs });

test('commands of which each needs a restart end at once, with one that is killed by it', async () => {
  await using container = await endableContainer();
  const other = container.exec(sleeps('other'));
  await haveBegun('other');
  const [one, two, all] = await Promise.all([
    container.exec(untagged(2_000)),
    container.exec(untagged(2_000)),
    container.exec(untagged(60_000)).then(() => container.killAll()),
  ]);
  expect([one, two]).toMatchObject([{ ended: 'timed-out' }, { ended: 'timed-out' }]);
  expect(await other).toMatchObject(killedInside);
  expect(all).toBe('restarted');
  const next = await container.exec({ argv: ['echo', 'well'], timeoutMs: 60_000 });
  expect(next).toMatchObject({ ended: 'exited', exitCode: 0, stdout: { text: 'well\n' } });
});
