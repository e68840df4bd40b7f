import { expect, test } from 'vitest';
import { hostNetwork, type Network } from '../../src/gateway/hosts/proxy.ts';
import { place } from '../gateway/gateway-fixture.ts';
import { json, testUpstream } from '../gateway/test-upstream.ts';

/**
 * An agent writes a plain request for an allowed host so that the host reads two requests, or another name
 * than was checked.
 */

const hosts = ['registry.example', '*.mirror.example:8080'];

function networkTo(port: number): Network {
  return {
    lookup: async () => ['93.184.216.34'],
    connect: (_to, signal) => hostNetwork.connect({ address: '127.0.0.1', port }, signal),
  };
}

const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: internal.example\r\n\r\n';

test.for([
  ['GET', { 'transfer-encoding': 'chunked' }],
  ['DELETE', { 'transfer-encoding': 'chunked' }],
  ['GET', { 'content-length': `${smuggled.length}`, connection: 'content-length' }],
  ['POST', { 'content-length': `${smuggled.length}`, connection: 'close, Content-Length' }],
] as const)('the body of a %s with %o stays a body', async ([method, headers]) => {
  await using host = await testUpstream(json(200, {}));
  await using at = await place({ session: { hosts }, gateway: { network: networkTo(host.port) } });
  const path = 'http://registry.example/first';
  expect(await at.sandbox.ask({ method, path, headers: { ...headers }, body: smuggled })).toMatchObject({
    status: 200,
  });
  expect(host.received.map((received) => received.path)).toEqual(['/first']);
  expect(`${host.received[0]?.body}`).toBe(smuggled);
});

test.for([
  ['http://registry.example/', 'registry.example'],
  ['http://registry.example:80/', 'registry.example'],
  ['http://REGISTRY.Example./', 'registry.example'],
  ['HTTP://A.mirror.example:8080/', 'a.mirror.example:8080'],
  ['http://registry.example?x', 'registry.example'],
])('%s reaches the host by the name that was judged, %s', async ([path, name]) => {
  await using host = await testUpstream(json(200, {}));
  await using at = await place({ session: { hosts }, gateway: { network: networkTo(host.port) } });
  const headers = { host: 'internal.example', 'x-forwarded-host': 'kept.example' };
  expect(await at.sandbox.ask({ method: 'GET', path, headers })).toMatchObject({ status: 200 });
  expect(host.received[0]?.headers).toMatchObject({ host: name, 'x-forwarded-host': 'kept.example' });
});

test.for([
  'http://registry.example@evil.example/',
  'http://registry.example%2eevil.example/',
  'http://registry.example:80:80/',
  'http://registry.example:0x50/',
  'http://[::ffff:127.0.0.1]/',
  'http://0x7f.1/',
  'http://0177.0.0.1/',
  'http://①②⑦.0.0.1/',
  'http://registry.example\\@evil.example/',
])('%s reaches nothing', async (path) => {
  await using host = await testUpstream(json(200, {}));
  await using at = await place({ session: { hosts }, gateway: { network: networkTo(host.port) } });
  const asked = Buffer.from(path).toString('latin1');
  expect((await at.sandbox.ask({ method: 'GET', path: asked })).status).toBeOneOf([400, 403]);
  expect(host.received).toHaveLength(0);
});
