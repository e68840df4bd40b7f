import { createHash } from 'node:crypto';
import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type EngineCandidate, engineCandidates } from '../../scripts/set-up/engine-candidates.ts';
import { findEngine } from '../../scripts/set-up/find-engine.ts';
import { pingEngine } from '../../scripts/set-up/ping-engine.ts';

const temporary = () => mkdtempDisposable(join(tmpdir(), 'offsite-engine-'));

async function listening(socketPath: string, listener: RequestListener) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  return {
    stop: () => new Promise((resolve) => server.close(resolve)),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const engine: RequestListener = (request, response) => {
  response.setHeader('Api-Version', '1.41');
  response.writeHead(request.url === '/_ping' ? 200 : 404).end('OK');
};

const candidate = (socketPath: string, chosen = false): EngineCandidate => ({
  address: { socketPath },
  namedBy: chosen ? 'DOCKER_HOST' : socketPath,
  chosen,
});

describe('asking whether an engine is there', () => {
  test('an engine answers with its API version', async () => {
    await using folder = await temporary();
    const socketPath = join(folder.path, 'engine.sock');
    await using _server = await listening(socketPath, engine);
    expect(await pingEngine({ socketPath }, 60_000)).toEqual({ state: 'alive', apiVersion: '1.41' });
  });

  test('a socket that was never there, and one that a killed engine left, are both absent', async () => {
    await using folder = await temporary();
    const missing = { socketPath: join(folder.path, 'missing.sock') };
    expect((await pingEngine(missing, 60_000)).state).toBe('absent');
    const notASocket = join(folder.path, 'left.sock');
    await writeFile(notASocket, '');
    expect((await pingEngine({ socketPath: notASocket }, 60_000)).state).toBe('absent');
  });

  test('one that hangs, and one that answers with an error, are unwell', async () => {
    await using folder = await temporary();
    const hanging = join(folder.path, 'hanging.sock');
    await using _hanging = await listening(hanging, () => undefined);
    expect((await pingEngine({ socketPath: hanging }, 50)).state).toBe('unwell');
    const failing = join(folder.path, 'failing.sock');
    await using _failing = await listening(failing, (_, response) => response.writeHead(500).end());
    expect(await pingEngine({ socketPath: failing }, 60_000)).toMatchObject({ reason: 'it answered 500' });
  });

  test('giving up ends the wait', async () => {
    await using folder = await temporary();
    const socketPath = join(folder.path, 'hanging.sock');
    const controller = new AbortController();
    await using _server = await listening(socketPath, () => controller.abort(new Error('enough')));
    await expect(pingEngine({ socketPath }, 60_000, controller.signal)).rejects.toThrow('enough');
  });
});

describe('finding an engine', () => {
  test('the first that answers is taken', async () => {
    await using folder = await temporary();
    const socketPath = join(folder.path, 'engine.sock');
    await using _server = await listening(socketPath, engine);
    const found = await findEngine([candidate(join(folder.path, 'none.sock')), candidate(socketPath)]);
    expect(found).toEqual({ address: { socketPath }, namedBy: socketPath });
  });

  test('none is no error where nobody chose one, so that one can be installed', async () => {
    expect(await findEngine([candidate('/nonexistent/engine.sock')])).toBeUndefined();
  });

  test('a chosen engine that is silent is an error, and no other is taken or installed', async () => {
    const chosen = findEngine([candidate('/nonexistent/engine.sock', true)]);
    await expect(chosen).rejects.toMatchObject({ code: 'ENGINE_UNREACHABLE', kind: 'input' });
  });
});

describe('where engines are looked for', () => {
  const socketsOf = (candidates: EngineCandidate[]) => candidates.map(({ address }) => address);

  test('DOCKER_HOST comes first and alone', async () => {
    expect(await engineCandidates({ DOCKER_HOST: 'tcp://10.1.2.3:2376' }, '/home/a')).toEqual([
      { address: { host: '10.1.2.3', port: 2376 }, namedBy: 'DOCKER_HOST', chosen: true },
    ]);
    await expect(engineCandidates({ DOCKER_HOST: 'ssh://a@b' }, '/home/a')).rejects.toMatchObject({
      kind: 'input',
    });
  });

  test("then the docker CLI's current context", async () => {
    await using folder = await temporary();
    const id = createHash('sha256').update('colima').digest('hex');
    const meta = join(folder.path, '.docker/contexts/meta', id, 'meta.json');
    await mkdir(dirname(meta), { recursive: true });
    await writeFile(join(folder.path, '.docker/config.json'), '{"currentContext":"colima"}');
    await writeFile(meta, '{"Endpoints":{"docker":{"Host":"unix:///colima/docker.sock"}}}');
    expect(await engineCandidates({}, folder.path)).toEqual([
      {
        address: { socketPath: '/colima/docker.sock' },
        namedBy: 'the docker context "colima"',
        chosen: true,
      },
    ]);
    await expect(engineCandidates({ DOCKER_CONTEXT: 'gone' }, folder.path)).rejects.toThrow(
      '"gone" is selected',
    );
  });

  test('then the usual sockets, rootless ones among them', async () => {
    await using folder = await temporary();
    const usual = await engineCandidates({ XDG_RUNTIME_DIR: '/run/user/1000' }, folder.path);
    expect(socketsOf(usual)[0]).toEqual({ socketPath: '/var/run/docker.sock' });
    expect(socketsOf(usual)).toContainEqual({ socketPath: '/run/user/1000/podman/podman.sock' });
  });
});
