import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectEngine } from '../../src/engine/connect.ts';
import { candidates } from '../../src/engine/connection/connect.ts';
import { engineSocket } from './engine-socket.ts';

let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'offsite-home-'));
  await addContext(
    'lab',
    { Host: 'tcp://lab:2376' },
    { 'ca.pem': 'CA', 'cert.pem': 'CERT', 'key.pem': 'KEY' },
  );
  await addContext('sock', { Host: `unix://${engineSocket}` });
});
afterAll(() => rm(home, { recursive: true, force: true }));

/** The files that `docker context create` leaves. */
async function addContext(
  name: string,
  docker: object,
  certificates: Record<string, string> = {},
): Promise<void> {
  const folder = createHash('sha256').update(name).digest('hex');
  const meta = join(home, '.docker/contexts/meta', folder);
  await mkdir(meta, { recursive: true });
  await writeFile(join(meta, 'meta.json'), JSON.stringify({ Name: name, Endpoints: { docker } }));
  const tls = join(home, '.docker/contexts/tls', folder, 'docker');
  await mkdir(tls, { recursive: true });
  for (const [file, text] of Object.entries(certificates)) await writeFile(join(tls, file), text);
}

const connect = (options: { host?: string; env?: NodeJS.ProcessEnv }) =>
  connectEngine({ env: { HOME: home }, instance: 'test-connection', ...options });

describe('which engine is meant', () => {
  test('the configured host, DOCKER_HOST, DOCKER_CONTEXT, the current context, the usual sockets', async () => {
    const settings = join(home, '.docker/config.json');
    const env = {
      HOME: home,
      DOCKER_HOST: 'tcp://env:1',
      DOCKER_CONTEXT: 'sock',
      XDG_RUNTIME_DIR: '/run/user/7',
    };
    await writeFile(settings, JSON.stringify({ currentContext: 'lab' }));

    expect(await candidates('tcp://flag:1', env)).toMatchObject([{ host: 'tcp://flag:1' }]);
    expect(await candidates(undefined, env)).toMatchObject([{ host: 'tcp://env:1', source: 'DOCKER_HOST' }]);
    const noHost = { ...env, DOCKER_HOST: '' };
    expect(await candidates(undefined, noHost)).toMatchObject([{ host: `unix://${engineSocket}` }]);
    const noContext = { ...noHost, DOCKER_CONTEXT: '' };
    expect(await candidates(undefined, noContext)).toMatchObject([
      { host: 'tcp://lab:2376', tls: { ca: 'CA', cert: 'CERT', key: 'KEY', rejectUnauthorized: true } },
    ]);
    const usual = (await candidates(undefined, { ...noHost, DOCKER_CONTEXT: 'default' })).map(
      ({ host }) => host,
    );
    const byPodman = { ...noHost, DOCKER_CONTEXT: 'default', CONTAINER_HOST: 'unix:///podman.sock' };
    expect(await candidates(undefined, byPodman)).toMatchObject([
      { host: 'unix:///podman.sock', isNamed: true },
    ]);
    expect(usual[0]).toBe('unix:///var/run/docker.sock');
    expect(usual).toContain('unix:///run/user/7/docker.sock');
    expect(usual).toContain('unix:///run/user/7/podman/podman.sock');
    await rm(settings);
  });

  test('a missing context and settings that are not JSON are input errors', async () => {
    await expect(connect({ env: { HOME: home, DOCKER_CONTEXT: 'gone' } })).rejects.toMatchObject({
      code: 'ENGINE_BAD_CONTEXT',
      kind: 'input',
      message: expect.stringContaining('gone'),
    });
    const settings = join(home, '.docker/config.json');
    await writeFile(settings, '{oops');
    await expect(connect({})).rejects.toMatchObject({ code: 'ENGINE_BAD_CONTEXT', kind: 'input' });
    await rm(settings);
  });

  test('an invalid address is an input error', async () => {
    for (const host of ['docker.sock', 'ftp://host', 'tcp://', 'ssh://']) {
      await expect(connect({ host }), host).rejects.toMatchObject({
        code: 'ENGINE_BAD_ADDRESS',
        kind: 'input',
      });
    }
  });
});

describe('connecting', () => {
  test('speaks a version both sides know and reports what the engine can do', async () => {
    await using engine = await connect({ env: { HOME: home, DOCKER_CONTEXT: 'sock' } });
    expect(engine.address).toContain('context "sock"');
    expect(engine.capabilities).toMatchObject({ os: 'linux', limits: { memory: true, pids: true } });
    expect(engine.capabilities.apiVersion).toMatch(/^1\.\d+$/);
    expect(engine.capabilities.runtimes).toContain(engine.capabilities.defaultRuntime);
    const noNames = ['no/such-image:ever', 'Upper', '', '-', '../info?', 'a b', 'a@b'];
    // The engine redirects such paths.
    const redirected = ['http://127.0.0.1:9/x', 'a//b', 'a/./b', 'a/', 'a/.'];
    for (const name of [...noNames, ...redirected]) expect(await engine.findImage(name)).toBeUndefined();
  });

  test('if the engine that the user names does not answer, no other is used', async () => {
    const failure = connect({ env: { HOME: home, DOCKER_HOST: `unix://${home}/none.sock` } });
    await expect(failure).rejects.toMatchObject({
      code: 'ENGINE_UNREACHABLE',
      kind: 'infrastructure',
      message: expect.stringMatching(/none\.sock \(DOCKER_HOST\)/),
      hint: expect.stringContaining('DOCKER_HOST'),
    });
  });

  test('an engine that is too old is refused by name', async () => {
    const socket = join(home, 'old.sock');
    const server = createServer((_request, response) => {
      response.setHeader('content-type', 'application/json').end('{"ApiVersion":"1.24"}');
    });
    await new Promise<void>((resolve) => server.listen(socket, resolve));
    try {
      await expect(connect({ host: `unix://${socket}` })).rejects.toMatchObject({ code: 'ENGINE_TOO_OLD' });
    } finally {
      server.close();
    }
  });

  test('an abort ends the wait for an engine that accepts and never answers', async () => {
    const socket = join(home, 'mute.sock');
    const server = createServer(() => undefined);
    await new Promise<void>((resolve) => server.listen(socket, resolve));
    const abort = new AbortController();
    server.once('request', () => abort.abort(new Error('gave up')));
    try {
      const connecting = connectEngine({
        host: `unix://${socket}`,
        env: {},
        instance: 'test',
        signal: abort.signal,
      });
      await expect(connecting).rejects.toThrow('gave up');
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});

describe('ssh', () => {
  /** A folder with an `ssh` that forwards to this machine's own engine, whatever host it is asked for. */
  async function fakeSsh(program: string): Promise<NodeJS.ProcessEnv> {
    const bin = await mkdtemp(join(home, 'bin-'));
    await symlink(process.execPath, join(bin, 'node'));
    await writeFile(join(bin, 'ssh'), program);
    await chmod(join(bin, 'ssh'), 0o755);
    return { HOME: home, PATH: bin };
  }

  test("the system's ssh forwards the socket, once for all requests, and ends with the engine", async () => {
    const log = join(home, 'ssh-log');
    const env = await fakeSsh(`#!${process.execPath}
      const { createServer, connect } = require('node:net');
      const { appendFileSync } = require('node:fs');
      appendFileSync(${JSON.stringify(log)}, JSON.stringify(process.argv.slice(2)) + '\\n');
      const [local] = process.argv[process.argv.indexOf('-L') + 1].split(':');
      createServer((near) => near.pipe(connect(${JSON.stringify(engineSocket)})).pipe(near)).listen(local);
    `);
    const engine = await connect({ host: 'ssh://me@lab:2222/run/engine.sock', env });
    expect(await engine.findImage('offsite/base')).toHaveProperty('id');
    await engine[Symbol.asyncDispose]();
    const { readFile } = await import('node:fs/promises');
    const calls = (await readFile(log, 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(calls).toHaveLength(1);
    expect(calls[0].join(' ')).toMatch(/^-N .* -L \S+:\/run\/engine\.sock -p 2222 -l me -- lab$/);
  });

  test('the error contains the message of ssh', async () => {
    const env = await fakeSsh('#!/bin/sh\necho "Permission denied (publickey)." >&2; exit 255\n');
    await expect(connect({ host: 'ssh://lab', env })).rejects.toMatchObject({
      code: 'ENGINE_UNREACHABLE',
      message: expect.stringContaining('Permission denied'),
    });
  });
});
