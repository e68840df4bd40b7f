import { createHash } from 'node:crypto';
import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ensureEngine } from '../../scripts/set-up/ensure-engine.ts';
import { systemClock } from '../../src/base/clock.ts';

const temporary = () => mkdtempDisposable(join(tmpdir(), 'offsite-engine-'));

async function listening(socketPath: string, listener: RequestListener) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  return {
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const engine: RequestListener = (_, response) => response.end('{"ApiVersion":"1.41"}');

/** Never changes the machine: what it would do instead of finding an engine is an error then. */
const ensure = (env: NodeJS.ProcessEnv, signal?: AbortSignal) =>
  ensureEngine({
    env: { OFFSITE_NO_INSTALL: '1', ...env },
    log: () => undefined,
    during: (_title, work) => work(),
    clock: systemClock,
    signal,
  });

describe('finding an engine', () => {
  test('the one that DOCKER_HOST names is taken', async () => {
    await using folder = await temporary();
    const socketPath = join(folder.path, 'engine.sock');
    await using _server = await listening(socketPath, engine);
    const found = await ensure({ DOCKER_HOST: `unix://${socketPath}` });
    expect(found.address).toBe(`unix://${socketPath} (DOCKER_HOST)`);
    await found.close();
  });

  test("then that of the docker CLI's current context", async () => {
    await using folder = await temporary();
    const socketPath = join(folder.path, 'engine.sock');
    await using _server = await listening(socketPath, engine);
    const id = createHash('sha256').update('colima').digest('hex');
    const meta = join(folder.path, '.docker/contexts/meta', id, 'meta.json');
    await mkdir(dirname(meta), { recursive: true });
    await writeFile(join(folder.path, '.docker/config.json'), '{"currentContext":"colima"}');
    await writeFile(meta, JSON.stringify({ Endpoints: { docker: { Host: `unix://${socketPath}` } } }));
    const found = await ensure({ HOME: folder.path });
    expect(found.address).toContain('the Docker context "colima"');
    await found.close();
    await expect(ensure({ HOME: folder.path, DOCKER_CONTEXT: 'gone' })).rejects.toMatchObject({
      code: 'ENGINE_BAD_CONTEXT',
      kind: 'input',
    });
  });

  test('a chosen engine that is silent is an error, and no other is taken or installed', async () => {
    await using folder = await temporary();
    const left = join(folder.path, 'left.sock');
    await writeFile(left, '');
    for (const path of [join(folder.path, 'missing.sock'), left]) {
      const chosen = ensure({ DOCKER_HOST: `unix://${path}` });
      await expect(chosen).rejects.toMatchObject({ code: 'ENGINE_UNREACHABLE', kind: 'input' });
    }
  });

  test('one that answers with an error, or as something else does, is not taken', async () => {
    await using folder = await temporary();
    const socketPath = join(folder.path, 'engine.sock');
    const env = { DOCKER_HOST: `unix://${socketPath}` };
    {
      await using _failing = await listening(socketPath, (_, response) => response.writeHead(500).end());
      await expect(ensure(env)).rejects.toMatchObject({ code: 'ENGINE_REFUSED' });
    }
    await using _other = await listening(socketPath, (_, response) => response.end('{"hello":"world"}'));
    await expect(ensure(env)).rejects.toThrow('not a Docker engine');
  });

  test('giving up ends the wait', async () => {
    await using folder = await temporary();
    const socketPath = join(folder.path, 'hanging.sock');
    const controller = new AbortController();
    await using _server = await listening(socketPath, () => controller.abort(new Error('enough')));
    await expect(ensure({ DOCKER_HOST: `unix://${socketPath}` }, controller.signal)).rejects.toThrow(
      'enough',
    );
  });
});
