import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { connectEngine } from '../../src/engine/connect.ts';
import { type SshServer, sshServer } from './ssh-server.ts';

const connectModule = new URL('../../src/engine/connect.ts', import.meta.url).href;

let server: SshServer;
beforeAll(async () => {
  server = await sshServer();
});
afterAll(() => server?.[Symbol.asyncDispose]());

const connect = () => connectEngine({ host: server.host, env: server.env, instance: 'test-ssh' });

test('an engine behind a real sshd answers, and nothing is left once it is closed', async () => {
  const engine = await connect();
  expect(await engine.findImage('offsite/base')).toHaveProperty('id');
  expect(await server.clients()).toHaveLength(1);
  await engine[Symbol.asyncDispose]();
  expect(await server.clients()).toEqual([]);
});

test('a forward whose ssh is killed is set up again, and the same engine answers', async () => {
  await using engine = await connect();
  const before = await server.clients();
  await server.cut();
  await expect.poll(() => answers(engine), { timeout: 30_000, interval: 50 }).toBe(true);
  const after = await server.clients();
  expect(after).toHaveLength(1);
  expect(after).not.toEqual(before);
});

test('while the server is away the forward is tried again, until it is back', async () => {
  await using engine = await connect();
  await server.stop();
  await expect.poll(() => answers(engine), { timeout: 30_000 }).toBe(false);
  // Long enough for a try that fails.
  await systemClock.sleep(1_500);
  await server.start();
  await expect.poll(() => answers(engine), { timeout: 60_000 }).toBe(true);
});

test('the ssh of a process that is killed ends too, and its socket goes', async () => {
  const known = new Set(await folders());
  const child = execa(
    'node',
    [
      '--input-type=module',
      '--eval',
      `const { connectEngine } = await import(${JSON.stringify(connectModule)});
       await connectEngine({ host: ${JSON.stringify(server.host)}, instance: 'test-ssh-killed' });
       console.log('connected');
       setInterval(() => undefined, 1000);`,
    ],
    { env: server.env, reject: false },
  );
  const connected = once(child.stdout, 'data');
  const [said] = await Promise.race([connected, child.then(({ stderr }) => [stderr])]);
  expect(String(said)).toBe('connected\n');
  expect(await server.clients()).toHaveLength(1);
  const own = (await folders()).filter((name) => !known.has(name));
  expect(own).toHaveLength(1);
  child.kill('SIGKILL');
  await child;
  await expect.poll(() => server.clients(), { timeout: 30_000 }).toEqual([]);
  await expect.poll(() => own.filter((name) => existsSync(`${tmpdir()}/${name}`))).toEqual([]);
});

test('a process that cannot reach its engine by ssh ends, and nothing is left', async () => {
  const known = new Set(await folders());
  const program = `const { connectEngine } = await import(${JSON.stringify(connectModule)});
    await connectEngine({ host: 'ssh://root@127.0.0.1:1', instance: 'test-ssh-none' }).catch((e) => console.log(e.code));`;
  const args = ['--input-type=module', '--eval', program];
  const { stdout } = await execa('node', args, { env: server.env, timeout: 20_000 });
  expect(stdout).toBe('ENGINE_UNREACHABLE');
  expect((await folders()).filter((name) => !known.has(name))).toEqual([]);
});

async function folders(): Promise<string[]> {
  return (await readdir(tmpdir())).filter((name) => name.startsWith('offsite-ssh-'));
}

async function answers(engine: Awaited<ReturnType<typeof connect>>): Promise<boolean> {
  try {
    await engine.findImage('offsite/base');
    return true;
  } catch {
    return false;
  }
}
