import { once } from 'node:events';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { plainAnswer } from '../../../src/gateway/relay/plain-answer.ts';
import { hangMs, type RelayedSandbox, relayedSandbox } from './relayed-sandbox.ts';

vi.setConfig({ testTimeout: hangMs });

let relayed: RelayedSandbox;
beforeAll(async () => {
  relayed = await relayedSandbox();
});
afterAll(() => relayed[Symbol.asyncDispose]());

test('a tunnel carries bytes both ways, and each end can finish by itself', async () => {
  const tunnel = relayed.nextTunnel();
  const ended = relayed.module(`
    import { connect } from 'node:net';
    const socket = connect({ port: Number(process.env.PORT), host: '127.0.0.1', allowHalfOpen: true });
    socket.write('CONNECT host.test:443 HTTP/1.1\\r\\nHost: host.test:443\\r\\nProxy-Authorization: Basic x\\r\\n\\r\\nearly ');
    let all = '';
    socket.setEncoding('latin1').on('data', (text) => {
      all += text;
      if (all.endsWith('early ')) socket.end('late');
    });
    socket.on('end', () => console.log(all));
  `);
  const { request, client, first } = await tunnel;
  expect(request.url).toBe('host.test:443');
  expect(request.headers).toMatchObject({ 'proxy-authorization': 'Basic x' });
  client.write('HTTP/1.1 200 OK\r\n\r\n');
  client.unshift(first);
  for await (const chunk of client.iterator({ destroyOnReturn: false })) client.write(chunk);
  client.end(' bye');
  expect(await ended).toBe('HTTP/1.1 200 OK\r\n\r\nearly late bye\n');
});

test('a tunnel that is refused, cut or left shows so at its other end', async () => {
  const refusing = relayed.nextTunnel();
  const refused = relayed.shell('curl -sv -p -x $ORIGIN http://refused.test/ 2>&1; echo $?');
  (await refusing).client.end(plainAnswer(403, 'not on the list'));
  expect(await refused).toMatch(/HTTP\/1.1 403 Forbidden[\s\S]*\n56\n$/);

  const cutting = relayed.nextTunnel();
  const cut = relayed.shell('curl -s -p -x $ORIGIN http://cut.test:1/ 2>&1; echo $?');
  const { client: half } = await cutting;
  half.write('HTTP/1.1 200 OK\r\n\r\nhalf', () => half.destroy(new Error('the host is gone')));
  expect(await cut).not.toMatch(/\n0\n$/);

  const left = relayed.nextTunnel();
  const leave = new AbortController();
  const ended = relayed.shell('curl -s -p -x $ORIGIN http://left.test/', undefined, leave.signal);
  const { client } = await left;
  client.write('HTTP/1.1 200 OK\r\n\r\n');
  const gone = once(client.resume(), 'end');
  leave.abort();
  await gone;
  client.end();
  await ended;
});
