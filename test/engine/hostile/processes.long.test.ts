import { expect, test } from 'vitest';
import { shell, startedContainer, until } from '../engine-fixture.ts';
import { engine, sharedEngine } from '../shared-engine.ts';

sharedEngine();

/**
 * Forks twice, leaves its session and its environment, ignores all signals it can, and forges the answer as
 * long as it lives.
 */
const forgerProgram = `
import os, signal, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)
os.closerange(0, 100)
while True:
    with open('/workspace/answer', 'w') as answer: answer.write('forged')
    time.sleep(0.005)
`;

test('a daemon that outlives its command and rewrites the workspace is gone before the next script reads it', async () => {
  await using container = await startedContainer(engine);
  for (const user of ['0', '1000']) {
    await shell(container, 'chmod 777 .; rm -f answer');
    const left = await container.exec({ argv: ['python3', '-c', forgerProgram], user, timeoutMs: 60_000 });
    expect(left).toMatchObject({ ended: 'exited', exitCode: 0 });
    // Those that it left on its way may be a moment behind it.
    await until(async () => (await container.processes()).length === 1);
    await container.killAll();
    const check = await container.runScript({
      script: 'echo -n true > answer\nsleep 0.1\ncat answer',
      timeoutMs: 60_000,
    });
    expect(check.steps.map(({ output }) => output)).toEqual(['', '', 'true']);
    // The shell with the last word of the script may be a moment in ending.
    await until(async () => (await container.processes()).length === 0);
  }
});

test('a program that closed its outputs runs to its end, as a step of a script too, and its exit code counts', async () => {
  await using container = await startedContainer(engine);
  const program = `import os, time; os.write(1, b'said'); os.closerange(0, 100); time.sleep(0.4); os._exit(6)`;
  const result = await container.exec({ argv: ['python3', '-c', program], timeoutMs: 60_000 });
  expect(result).toMatchObject({ ended: 'exited', exitCode: 6, stdout: { text: 'said' } });
  const script = await container.runScript({
    script: `python3 -c "${program}"\necho next`,
    timeoutMs: 60_000,
  });
  expect(script.steps.map(({ exitCode, output }) => [exitCode, output])).toEqual([
    [6, 'said'],
    [0, 'next\n'],
  ]);
});
