import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, mkdtempDisposable, readdir, rm, stat, utimes } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { duplexPair, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { execa } from 'execa';
import { expect, test, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import type { Container } from '../../../src/engine/container.ts';
import type { Engine } from '../../../src/engine/engine.ts';
import type { RelayHandler } from '../../../src/gateway/relay/relay.ts';
import { beginSidecar, openSharedSocket, socketName } from '../../../src/gateway/relay/sidecar.ts';
import { dockerOf } from '../../engine/docker-of.ts';
import { testEngine } from '../../engine/engine-fixture.ts';
import { byEngineHere } from '../../needs.ts';
import { hangMs, type RelayedSandbox, relayedSandbox } from './relayed-sandbox.ts';

vi.setConfig({ testTimeout: hangMs });

test('only this user reaches the socket, everyone who has its folder can, and both go', async () => {
  const shared = await openSharedSocket();
  const { folder = '' } = shared ?? {};
  const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);
  expect(await modeOf(dirname(folder))).toBe('700');
  expect(await modeOf(folder)).toBe('755');
  expect(await modeOf(join(folder, socketName))).toBe('666');
  await shared?.[Symbol.asyncDispose]();
  expect(existsSync(dirname(folder))).toBe(false);
});

test('the folders of processes that were killed are removed, and no other', async () => {
  const aged = async (listening: boolean) => {
    const own = await mkdtemp(join(tmpdir(), 'offsite-relay-'));
    await mkdir(join(own, 'gateway'));
    const path = join(own, 'gateway', socketName);
    // A process that is killed leaves its socket.
    const listen = `require('net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))`;
    if (!listening) await execa(process.execPath, ['-e', listen, path], { reject: false });
    const server = createServer();
    if (listening) await new Promise<void>((resolve) => server.listen(path, resolve));
    await utimes(own, 0, 0);
    const remove = () => rm(own, { recursive: true, force: true });
    return { own, [Symbol.asyncDispose]: () => remove().finally(() => server.close()) };
  };
  await using alive = await aged(true);
  await using dead = await aged(false);
  const module = new URL('../../../src/gateway/relay/sidecar.ts', import.meta.url);
  const another = `await using shared = await (await import('${module}')).openSharedSocket();
    while (process.getBuiltinModule('fs').existsSync('${dead.own}')) await new Promise((resolve) => setTimeout(resolve, 10));`;
  await execa(process.execPath, ['--input-type=module', '-e', another]);
  expect(existsSync(alive.own)).toBe(true);
});

test('a relay loads HTTP/2 only where it does not share the socket', async () => {
  const program = readFileSync(
    new URL('../../../src/gateway/relay/sidecar/main.cjs', import.meta.url),
    'utf8',
  );
  const loaded = `process.on('exit', () => console.log(process.moduleLoadList.includes('NativeModule http2')));`;
  const loads = async (socket: string) => {
    const relay = execa(process.execPath, ['-e', `${program}\n${loaded}`, '0', '9', '65535', socket]);
    await once(relay.stderr, 'data');
    relay.stdin.end();
    return (await relay).stdout.endsWith('true');
  };
  await using shared = await openSharedSocket();
  expect(await loads(join(shared?.folder ?? '', socketName))).toBe(false);
  expect(await loads('/nowhere')).toBe(true);
});

test('a connection that arrives before the engine says that the relay has started is served', async () => {
  let socket = '';
  let client: Socket | undefined;
  const container: Partial<Container> = {
    id: 'relay',
    attach: async ({ onStderr }) => {
      onStderr?.(Buffer.from('listening\n'));
      return duplexPair()[0];
    },
    async start() {
      client = connect({ path: socket });
      client.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
      await once(client, 'connect');
      // By then it has been accepted.
      const other = connect({ path: socket });
      await once(other, 'connect');
      other.destroy();
      await new Promise((resolve) => setImmediate(resolve));
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
  const engine: Partial<Engine> = {
    capabilities: { cpus: 1 } as Engine['capabilities'],
    async createContainer({ mounts = [] }) {
      const [mount] = mounts;
      if (mount && 'folder' in mount) socket = join(mount.folder, socketName);
      return container as Container;
    },
  };
  const handler: RelayHandler = {
    request: (_request, response) => response.end('served'),
    connect: () => undefined,
  };
  const request = { network: 'none', image: '', handler, labels: {}, clock: systemClock } as const;
  const { signal } = new AbortController();
  await using sidecar = await beginSidecar(engine as Engine, request, signal);
  await sidecar.listening;
  expect(await text(client ?? Readable.from([]))).toMatch(/served$/);
});

byEngineHere.test('no path of a sandbox leads to the socket of its relay', async () => {
  await using relayed = await relayedSandbox();
  const [{ Source = '' } = {}] = await mountsOf(relayed);
  const socket = join(Source, socketName);
  expect(existsSync(socket)).toBe(true);
  const tried = await relayed.module(`
    import { connect } from 'node:net';
    import { readdirSync } from 'node:fs';
    const roots = ['', ...readdirSync('/proc').filter(Number).map((pid) => '/proc/' + pid + '/root')];
    const paths = roots.flatMap((root) => [root + '/gateway/socket', root + '${socket}']);
    for (const path of [...paths, '\\0${socket}', '\\0/gateway/socket'])
      connect({ path }).on('connect', () => console.log('reached', path)).on('error', () => undefined);
    setTimeout(() => process.exit(console.log('tried')), 1000);
  `);
  expect(tried).toBe('tried\n');
});

test('if the engine does not see the files of this process, it carries the connections', async () => {
  await using hidden = await mkdtempDisposable(join(tmpdir(), 'offsite-relay-'));
  const before = process.cwd();
  // The engine's own working folder is another, and may be the one in which the tests run.
  process.chdir(hidden.path);
  vi.stubEnv('TMPDIR', '/proc/self/cwd');
  try {
    await using relayed = await relayedSandbox();
    expect(await mountsOf(relayed)).toEqual([]);
    relayed.answer((_request, response) => response.end('here'));
    expect(await relayed.shell('curl -s $ORIGIN/')).toBe('here');
    expect(await readdir(hidden.path)).toEqual([]);
  } finally {
    vi.unstubAllEnvs();
    process.chdir(before);
  }
});

test('if the engine sees them no more when it starts the relay, it carries the connections', async () => {
  const engine = await testEngine();
  const losing: Engine = {
    ...engine,
    async createContainer(spec, signal) {
      const container = await engine.createContainer(spec, signal);
      for (const mount of spec.mounts ?? [])
        if ('folder' in mount) await rm(mount.folder, { recursive: true });
      return container;
    },
  };
  await using relayed = await relayedSandbox(losing);
  expect(await mountsOf(relayed)).toEqual([]);
  relayed.answer((_request, response) => response.end('here'));
  expect(await relayed.shell('curl -s $ORIGIN/')).toBe('here');
});

async function mountsOf(relayed: RelayedSandbox) {
  const [id = ''] = await relayed.sidecars();
  return (await dockerOf(relayed.engine).getContainer(id).inspect()).Mounts;
}
