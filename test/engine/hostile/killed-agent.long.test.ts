import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import { dockerOf } from '../docker-of.ts';
import { testSpec, until } from '../engine-fixture.ts';
import { engine, sharedEngine } from '../shared-engine.ts';

sharedEngine();

const ofInstance = (instance: string) =>
  dockerOf(engine).listContainers({ all: true, filters: { label: [`offsite.instance=${instance}`] } });

/** Starts an agent, kills it with SIGKILL once it is in the phase, and resolves with its instance. */
async function killedIn(phase: string, key = ''): Promise<string> {
  const program = new URL('./dying-agent.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [program, phase, key], { stdio: ['ignore', 'pipe', 'inherit'] });
  const closed = once(child, 'close');
  const [line] = await Promise.race([
    once(createInterface({ input: child.stdout }), 'line'),
    closed.then(() => Promise.reject(new Error(`the agent ended before it was in ${phase}`))),
  ]);
  const { instance } = JSON.parse(line);
  expect((await ofInstance(instance)).length, phase).toBeGreaterThan(0);
  child.kill('SIGKILL');
  await closed;
  return instance;
}

test('the next agent removes everything of an agent that was killed in any phase', async () => {
  const instances = await Promise.all(
    ['create', 'start', 'services', 'exec', 'snapshot'].map((phase) => killedIn(phase, randomUUID())),
  );
  await engine.sweep();
  // What another sweep was removing already may take a moment more.
  for (const instance of instances) await until(async () => (await ofInstance(instance)).length === 0);
});

test('the next request builds a snapshot whose builder was killed, without a sweep', async () => {
  const key = randomUUID();
  await killedIn('snapshot', key);
  const { imageId, ...container } = await testSpec(engine);
  const build = async () => undefined;
  const result = await engine.snapshot({ parentImageId: imageId, container, key, build });
  expect(result).toMatchObject({ kind: 'snapshot', built: true });
  if (result.kind === 'snapshot') await dockerOf(engine).getImage(result.imageId).remove();
});
