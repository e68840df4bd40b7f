import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import type { Network } from '../../../src/gateway/hosts/proxy.ts';
import { hostNetwork } from '../../../src/gateway/hosts/proxy.ts';
import { place } from '../gateway-fixture.ts';
import { type Sandbox, untilSeen } from '../sandbox.ts';
import { json, testUpstream } from '../test-upstream.ts';

interface TestNetwork extends Network {
  looked: string[];
  connected: { address: string; port: number }[];
}

/**
 * Names resolve to these addresses, and every connection goes to a port of this machine: no packet leaves it.
 */
function testNetwork(port: number, addresses: string[][]): TestNetwork {
  const looked: string[] = [];
  const connected: TestNetwork['connected'] = [];
  return {
    looked,
    connected,
    async lookup(host) {
      looked.push(host);
      return addresses[Math.min(looked.length, addresses.length) - 1] ?? [];
    },
    connect(to, signal) {
      connected.push(to);
      return hostNetwork.connect({ address: '127.0.0.1', port }, signal);
    },
  };
}

/** Asks for a tunnel; `first` came along with the answer, be it the words of a refusal. */
async function tunnelTo(sandbox: Sandbox, authority: string) {
  const asked = sandbox.request({ method: 'CONNECT', path: authority });
  const [answer, stream, first] = (await once(asked, 'connect')) as [IncomingMessage, Duplex, Buffer];
  return { status: answer.statusCode, stream, first };
}

const hosts = ['registry.example', '*.mirror.example:8080'];
const publicOnes = [['93.184.216.34']];

test('a tunnel to a named host carries bytes both ways, and is recorded with them', async () => {
  const ended = Promise.withResolvers<void>();
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('data', (chunk) => socket.write(`echo ${chunk}`));
    // Its end is told on, while the other way stays open.
    socket.on('end', () => {
      ended.resolve();
      socket.end('bye');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const network = testNetwork(port, publicOnes);
  await using at = await place({ session: { hosts }, gateway: { network } });
  const { status, stream } = await tunnelTo(at.sandbox, 'registry.example:443');
  const closed = new Promise((resolve) => stream.once('close', resolve));
  expect(status).toBe(200);
  const echoed = untilSeen(stream, 'echo hello');
  stream.write('hello');
  await echoed;
  const bye = untilSeen(stream, 'bye');
  stream.end();
  await ended.promise;
  await bye;
  await closed;
  expect(network.connected).toEqual([{ address: '93.184.216.34', port: 443 }]);
  expect((await at.session.account()).connections).toMatchObject([
    { host: 'registry.example', port: 443, sentBytes: 5, receivedBytes: 13, failure: undefined },
  ]);
  server.close();
});

test('a plain request with an absolute URL goes to a named host, without hop-by-hop headers', async () => {
  await using host = await testUpstream(json(200, { hello: 1 }, { 'x-answer': 'a', 'content-length': '11' }));
  const network = testNetwork(host.port, publicOnes);
  await using at = await place({ session: { hosts }, gateway: { network } });
  const headers = { 'proxy-authorization': 'secret', authorization: 'Basic x' };
  const path = 'http://a.mirror.example:8080/deb?x=1';
  const answer = await at.sandbox.ask({ path, headers, body: 'body' });
  expect(answer).toMatchObject({ status: 200, body: { hello: 1 }, headers: { 'x-answer': 'a' } });
  const [received] = host.received;
  expect(received).toMatchObject({
    method: 'POST',
    path: '/deb?x=1',
    headers: { host: 'a.mirror.example:8080', authorization: 'Basic x' },
  });
  expect(`${received?.body}`).toBe('body');
  expect(Object.keys(received?.headers ?? {})).not.toContain('proxy-authorization');
  expect(await at.sandbox.ask({ method: 'HEAD', path, headers })).toMatchObject({ status: 200 });
  const { connections } = await at.session.account();
  expect(connections).toMatchObject([{ host: 'a.mirror.example', port: 8080, failure: undefined }, {}]);
  expect(connections[0]?.sentBytes).toBeGreaterThan(4);
});

test.for([
  ['evil.example:443'],
  ['registry.example:22'],
  ['mirror.example:8080'],
  ['93.184.216.34:443'],
  ['127.0.0.1:80'],
  ['localhost:80'],
  ['[::1]:443'],
  ['2130706433:443'],
  ['169.254.169.254:80'],
] as const)('%s, which is not named, is refused without a look-up', async ([authority]) => {
  const network = testNetwork(1, publicOnes);
  await using at = await place({ session: { hosts }, gateway: { network } });
  const { status, stream, first } = await tunnelTo(at.sandbox, authority);
  expect(status).toBe(403);
  expect(`${first}${await text(stream)}`).toMatch(/this sandbox may not reach[\s\S]*offsite.yaml/);
  const path = `http://${authority}/`;
  expect(await at.sandbox.ask({ method: 'GET', path })).toMatchObject({ status: 403 });
  expect([network.looked, network.connected]).toEqual([[], []]);
  const { connections } = await at.session.account();
  expect(connections.map(({ failure }) => failure?.includes('may not reach'))).toEqual([true, true]);
});

test.for([
  ['loopback', ['127.0.0.1']],
  ['a link-local address', ['169.254.169.254']],
  ['a private address', ['10.0.0.5', 'fd00::1']],
  ['IPv4 dressed as IPv6', ['::ffff:127.0.0.1']],
  ['what is no address', ['localhost', '']],
  ['nothing', []],
] as const)('a named host that stands for %s is refused, and nothing is connected', async ([, addresses]) => {
  const network = testNetwork(1, [[...addresses]]);
  await using at = await place({ session: { hosts }, gateway: { network } });
  const answer = await at.sandbox.ask({ method: 'GET', path: 'http://registry.example/' });
  expect(answer).toMatchObject({ status: 403, body: expect.stringContaining('not public') });
  expect(network.connected).toEqual([]);
});

test('the connection goes to the checked address, even if the name resolves differently later', async () => {
  await using host = await testUpstream(json(200, {}));
  const network = testNetwork(host.port, [['93.184.216.34'], ['127.0.0.1']]);
  await using at = await place({ session: { hosts }, gateway: { network } });
  const get = () => at.sandbox.ask({ method: 'GET', path: 'http://registry.example/' });
  expect(await get()).toMatchObject({ status: 200 });
  expect(network).toMatchObject({
    looked: ['registry.example'],
    connected: [{ address: '93.184.216.34', port: 80 }],
  });
  expect(await get()).toMatchObject({ status: 403 });
  expect(network.connected).toHaveLength(1);
});

test('a private address is reached if the list names it', async () => {
  await using host = await testUpstream(json(200, {}));
  const network = testNetwork(host.port, [['10.0.0.5', '10.0.0.6']]);
  await using at = await place({ session: { hosts: ['inner.example', '10.0.0.6'] }, gateway: { network } });
  for (const authority of ['inner.example', '10.0.0.6']) {
    const path = `http://${authority}/`;
    expect(await at.sandbox.ask({ method: 'GET', path })).toMatchObject({ status: 200 });
  }
  expect(network.connected.map(({ address }) => address)).toEqual(['10.0.0.6', '10.0.0.6']);
});

test('a host that does not answer or does not exist is reported as such', async () => {
  await using at = await place({
    session: { hosts },
    gateway: {
      network: {
        lookup: async () => ['93.184.216.34'],
        connect: () => Promise.reject(new Error('refused')),
      },
    },
  });
  expect(await at.sandbox.ask({ method: 'GET', path: 'http://registry.example/' })).toMatchObject({
    status: 502,
  });

  const { promise: asked, resolve } = Promise.withResolvers<void>();
  const silent: Network = {
    lookup() {
      resolve();
      return new Promise(() => undefined);
    },
    connect: () => Promise.reject(new Error('unused')),
  };
  await using slow = await place({ session: { hosts }, gateway: { network: silent } });
  const pending = slow.sandbox.ask({ method: 'GET', path: 'http://registry.example/' });
  await asked;
  slow.clock.advance(30_000);
  expect(await pending).toMatchObject({ status: 504 });
});

test('a closed session ends its tunnels and opens no more', async () => {
  const server = createServer((socket) => socket.on('error', () => undefined));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await using at = await place({ session: { hosts }, gateway: { network: testNetwork(port, publicOnes) } });
  const { stream: tunnel } = await tunnelTo(at.sandbox, 'registry.example:443');
  // An account does not wait for it.
  expect((await at.session.account()).connections).toEqual([]);
  const closed = new Promise((resolve) => tunnel.once('close', resolve));
  at.session.close('the trial is over');
  await closed;
  expect(await at.sandbox.ask({ method: 'GET', path: 'http://registry.example/' })).toMatchObject({
    status: 400,
  });
  expect((await at.session.account()).connections).toMatchObject([{ failure: 'the trial is over' }]);
  server.close();
});

test('without named hosts there is no proxy', async () => {
  await using at = await place({ gateway: { network: testNetwork(1, publicOnes) } });
  expect(await at.sandbox.ask({ method: 'GET', path: 'http://registry.example/' })).toMatchObject({
    status: 403,
  });
});

test("this machine's own network connects to exactly the given address", async () => {
  const server = createServer((socket) => socket.end('hi'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const { signal } = new AbortController();
  const socket = await hostNetwork.connect({ address: '127.0.0.1', port }, signal);
  expect(`${(await socket.toArray()).join('')}`).toBe('hi');
  socket.destroy();
  await new Promise((resolve) => server.close(resolve));
  await expect(hostNetwork.connect({ address: '127.0.0.1', port }, signal)).rejects.toMatchObject({
    code: 'HOST_UNREACHABLE',
  });
  expect(await hostNetwork.lookup('localhost')).not.toEqual([]);
});
