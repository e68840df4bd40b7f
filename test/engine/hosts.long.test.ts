import { describe, expect, test } from 'vitest';
import type { ContainerSpec } from '../../src/engine/container/container-spec.ts';
import type { Container } from '../../src/engine/container.ts';
import { relayedSandbox } from '../gateway/relay/relayed-sandbox.ts';
import { dockerOf } from './docker-of.ts';
import { startedContainer, testSpec } from './engine-fixture.ts';
import { engine, sharedEngine } from './shared-engine.ts';

sharedEngine();

/**
 * What Node and the C library say that names stand for, and whether a server that listens by a name is
 * reached by it.
 */
const look = `
import { V4MAPPED } from 'node:dns';
import { once } from 'node:events';
import { lookup } from 'node:dns/promises';
import { createServer, get } from 'node:http';
import { hostname } from 'node:os';
import { execFileSync } from 'node:child_process';

const addresses = async (name) => (await lookup(name, { all: true })).map(({ address }) => address).sort();
const python = 'import json, socket, sys; print(json.dumps(sorted({found[4][0] for found in socket.getaddrinfo(sys.argv[1], 80)})))';
const server = createServer((_request, response) => response.end('reached')).listen(8080, 'localhost');
await once(server, 'listening');
// Node's clients leave out the IPv6 addresses of a name where the network has none, unless they are told how
// to look.
const hints = process.argv.includes('every-address') ? V4MAPPED : 0;
const [answer] = await once(get('http://localhost:8080', { hints }), 'response');
console.log(JSON.stringify({
  node: await addresses('localhost'),
  python: JSON.parse(execFileSync('python3', ['-c', python, 'localhost'], { encoding: 'utf8' })),
  own: (await addresses(hostname()))[0],
  server: String(await answer.setEncoding('utf8').toArray()),
}));
server.close();
process.exit();
`;

/**
 * @param tried addresses of the server's name that the client tries. Engines from 26 on give a container that
 * is on a network without IPv6 the loopback address ::1, where servers listen then, and Node's clients do not
 * look.
 */
async function expectNames(
  container: Container,
  tried: 'usual' | 'every' = 'usual',
  user?: string,
): Promise<void> {
  const more = tried === 'every' ? ['every-address'] : [];
  const result = await container.exec({
    argv: ['node', '--input-type=module', '--eval', look, '--', ...more],
    timeoutMs: 60_000,
    ...(user !== undefined && { user }),
  });
  expect(result.stderr.text).toBe('');
  expect(JSON.parse(result.stdout.text)).toEqual({
    node: ['127.0.0.1', '::1'],
    python: ['127.0.0.1', '::1'],
    own: '127.0.0.1',
    server: 'reached',
  });
}

const users: [string, Partial<ContainerSpec>][] = [
  ['root', {}],
  ['another user', { user: '1000' }],
  ['another user in the profile "strict"', { user: '1000', security: 'strict' }],
];

describe.each(users)('as %s, localhost and the own name are the loopback', (_, user) => {
  test('without a network', async () => {
    await using container = await startedContainer(engine, user);
    await expectNames(container);
  });

  test('with one, and once it is taken off it', async () => {
    await using container = await startedContainer(engine, { ...user, network: 'open' });
    await expectNames(container, 'every');
    await container.disconnect();
    await expectNames(container);
  });

  test('in the network of another', async () => {
    await using first = await startedContainer(engine, user);
    await using second = await startedContainer(engine, { ...user, network: { sharedWith: first.id } });
    await expectNames(second);
  });
});

test('a user who is not that of the container finds them too', async () => {
  await using container = await startedContainer(engine);
  await expectNames(container, 'usual', '64201:64201');
});

test('beside a relay as well', async () => {
  await using relayed = await relayedSandbox();
  await expectNames(relayed.sandbox);
});

test('they stay so when the container is started again', async () => {
  await using container = await startedContainer(engine);
  await dockerOf(engine).getContainer(container.id).restart({ t: 0 });
  await expectNames(container);
});

test('a user that the image names counts', async () => {
  await using made = await startedContainer(engine);
  const { Id } = await dockerOf(engine)
    .getContainer(made.id)
    .commit({ changes: 'USER node', repo: 'offsite-test', tag: made.id.slice(0, 12) });
  try {
    const spec = { ...(await testSpec(engine)), imageId: Id };
    await using container = await engine.createContainer(spec);
    await container.start();
    await expectNames(container);
  } finally {
    await dockerOf(engine).getImage(Id).remove({ force: true });
  }
});
