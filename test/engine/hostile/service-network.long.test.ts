import { randomUUID } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Engine } from '../../../src/engine/engine.ts';
import { dockerOf } from '../docker-of.ts';
import { shell, startedContainer, testEngine, testSpec, until } from '../engine-fixture.ts';

const probeProgram = readFileSync(new URL('./service-network-probe.py', import.meta.url));
const { signal } = new AbortController();

let engine: Engine;
let imageId: string;
beforeAll(async () => {
  engine = await testEngine();
  imageId = (await engine.findImage('offsite/base'))?.id ?? '';
});
afterAll(() => engine?.[Symbol.asyncDispose]());

/**
 * A socket of this machine on every address, for datagrams and for connections, that notes all that comes.
 */
async function listening() {
  const heard: string[] = [];
  const tcp = createServer((client) => {
    heard.push('a connection');
    client.destroy();
  });
  tcp.listen(0, '0.0.0.0');
  await once(tcp, 'listening');
  const { port } = tcp.address() as AddressInfo;
  const udp = createSocket('udp4', (message) => heard.push(String(message)));
  udp.bind(port, '0.0.0.0');
  await once(udp, 'listening');
  udp.addMembership('224.0.0.251');
  return {
    port,
    heard,
    [Symbol.dispose]: () => {
      tcp.close();
      udp.close();
    },
  };
}

const listen = (port: number) =>
  `import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.bind(('0.0.0.0', ${port}))\n` +
  "open('/tmp/ready', 'w').close()\n" +
  "while True:\n  m = s.recv(100)\n  open('/tmp/heard', 'ab').write(m + b'\\n')\n";

test('nothing that a member sends leaves its network, however it is sent; other members hear it', async () => {
  using host = await listening();
  await using network = await engine.openNetwork({ imageId, labels: {} }, signal);
  await using elsewhere = await engine.openNetwork({ imageId, labels: {} }, signal);
  const join = (to: typeof network, address: string) =>
    to.join({ address, hostName: 'member', network: 'none', hosts: {} }, signal);
  const [hostile, friend, stranger] = await Promise.all([
    join(network, '10.213.0.2'),
    join(network, '10.213.0.3'),
    join(elsewhere, '10.213.0.4'),
  ]);
  await using inside = await startedContainer(engine, {
    network: hostile.network,
    hosts: { friend: '10.213.0.3' },
  });
  await using beside = await startedContainer(engine, { network: friend.network });
  await using outside = await startedContainer(engine, { network: stranger.network });
  for (const container of [beside, outside]) {
    const script = `python3 -c "$1" > /dev/null 2>&1 < /dev/null & until [ -e /tmp/ready ]; do sleep 0.05; done`;
    const argv = ['sh', '-c', `setsid ${script}`, 'sh', listen(host.port)];
    expect(await container.exec({ argv, timeoutMs: 60_000 })).toMatchObject({ exitCode: 0 });
  }
  const { NetworkSettings } = await dockerOf(engine)
    .getContainer((await opened()).id)
    .inspect();
  const { Gateway: gateway = '', IPAddress: address = '' } = Object.values(NetworkSettings.Networks)[0] ?? {};
  const own = Object.values(networkInterfaces())
    .flatMap((interfaces) => interfaces ?? [])
    .filter(({ internal, family }) => !internal && family === 'IPv4')
    .map((hostInterface) => hostInterface.address);
  expect(own.length).toBeGreaterThan(0);
  const targets = [...new Set([gateway, address, ...own, '169.254.169.254', '10.213.0.1', '10.213.0.4'])];

  const token = randomUUID();
  const result = await inside.exec({
    argv: ['python3', '-', String(host.port), token, ...targets],
    stdin: probeProgram,
    timeoutMs: 240_000,
  });
  expect(result, result.stderr.text).toMatchObject({ ended: 'exited', exitCode: 0 });
  const found = JSON.parse(result.stdout.text);

  // The kernel sends to the others of the network, so the probe does send.
  await until(async () => (await shell(beside, 'cat /tmp/heard')).stdout.text.includes(token));
  expect(found.everybody).toContain('sent');
  expect(host.heard).toEqual([]);
  expect((await shell(outside, 'cat /tmp/heard')).stdout.text).toBe('');
  expect(Object.values<string[]>(found.tcp).flat()).not.toContain('connected');
  // It has no route, so what needs one fails at once.
  for (const target of targets.filter((one) => !one.startsWith('10.213.')))
    expect([found[target][0], found.tcp[target][0]], target).toEqual(['ENETUNREACH', 'ENETUNREACH']);
  expect(found.raw).not.toBe('made');
  expect(found.names).toEqual({
    'example.com': null,
    'host.docker.internal': null,
    'gateway.docker.internal': null,
    friend: '10.213.0.3',
  });
});

const others: AsyncDisposable[] = [];
afterAll(async () => {
  for (const other of others) await other[Symbol.asyncDispose]();
});

/** A sandbox on the engine's own network, and so with a gateway. */
async function opened() {
  const other = await startedContainer(engine, { network: 'open' });
  others.push(other);
  return other;
}

test('a member cannot change its network, and no member has a process of the other in sight', async () => {
  await using network = await engine.openNetwork({ imageId, labels: {} }, signal);
  const member = await network.join(
    { address: '10.213.0.2', hostName: 'member', network: 'none', hosts: {} },
    signal,
  );
  await using inside = await engine.createContainer(await testSpec(engine, { network: member.network }));
  await inside.start();
  const tried = await shell(
    inside,
    `python3 - <<'END'
import socket, struct
nl = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
def ask(kind, body):
    nl.send(struct.pack('=IHHII', 16 + len(body), kind, 5 | 0x600, 1, 0) + body)
    print(-struct.unpack_from('=i', nl.recv(65536), 16)[0])
# A further interface, an address, a default route.
ask(16, struct.pack('=BxHiII', 0, 0, 0, 0, 0) + struct.pack('=HH', 8, 3) + b'new\\0')
ask(20, struct.pack('=BBBBI', 2, 24, 0, 0, 1) + struct.pack('=HH4s', 8, 2, bytes([10, 213, 0, 1])))
ask(24, struct.pack('=BBBBBBBBI', 2, 0, 0, 0, 254, 3, 0, 1, 0) + struct.pack('=HHi', 8, 4, 2))
END
ls /proc | grep -c '^[0-9]'; ps -e -o comm= | sort -u`,
  );
  const [link, address, route] = tried.stdout.text.split('\n');
  // EPERM.
  expect([link, address, route]).toEqual(['1', '1', '1']);
  expect(tried.stdout.text).not.toContain('sleep');
  expect(tried.stdout.text).toMatch(/\noffsite-init-/);
});

test('a member that cannot be set up is reported in the words of the program that sets it up', async () => {
  await using network = await engine.openNetwork({ imageId, labels: {} }, signal);
  const member = { hostName: 'member', network: 'none', hosts: {} } as const;
  await expect(network.join({ ...member, address: '10.213.0.300' }, signal)).rejects.toMatchObject({
    code: 'NETWORK_NOT_MADE',
    message: expect.stringContaining('10.213.0.300/24'),
  });
  await network.join({ ...member, address: '10.213.0.2' }, signal);
});

test('a network is made of containers alone, and removing them leaves nothing on the machine', async () => {
  const label = { 'offsite.test': randomUUID() };
  const owned = async () => {
    const labels = Object.entries(label).map(([key, value]) => `${key}=${value}`);
    const kinds = ['container', 'network', 'volume'] as const;
    const lists = await Promise.all(kinds.map((kind) => engine.port.list(kind, labels)));
    return lists.map((list) => list.length);
  };
  const network = await engine.openNetwork({ imageId, labels: label }, signal);
  await network.join({ address: '10.213.0.2', hostName: 'one', network: 'none', hosts: {} }, signal);
  expect(await owned()).toEqual([2, 0, 0]);
  const interfaces = Object.entries(networkInterfaces());
  expect(interfaces.flatMap(([, all]) => all ?? []).map(({ address }) => address)).not.toContain(
    '10.213.0.2',
  );
  expect(interfaces.map(([name]) => name)).not.toContain('hub');
  await network[Symbol.asyncDispose]();
  expect(await owned()).toEqual([0, 0, 0]);
});
