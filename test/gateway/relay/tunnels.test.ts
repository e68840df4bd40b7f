import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { answerLast } from '../../../src/gateway/relay/relay.ts';
import { dockerOf } from '../../engine/docker-of.ts';
import { byEngineHere } from '../../needs.ts';
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
  answerLast((await refusing).client, 403, 'not on the list');
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

byEngineHere.describe('an engine that sees the files of this process', () => {
  describe.each(['socket', 'engine'])('over the %s', (way) => {
    beforeAll(async () => {
      if (way === 'engine') await rm(await sharedSocket());
    });

    test('a client sees whether its connection ended or broke off', async () => {
      const seen = (path: string) =>
        relayed.module(`
        import { connect } from 'node:net';
        const socket = connect({ port: Number(process.env.PORT), host: '127.0.0.1', allowHalfOpen: true });
        socket.write('GET ${path} HTTP/1.0\\r\\n\\r\\n');
        socket.resume().on('end', () => socket.end()).on('error', ({ code }) => console.log(code));
        socket.on('close', (failed) => console.log(failed ? 'broken' : 'whole'));
      `);
      relayed.answer(({ url }, response) => {
        if (url === '/whole') return response.end('all');
        return response.write('half', () => response.destroy(new Error('the host is gone')));
      });
      expect(await seen('/whole')).toBe('whole\n');
      expect(await seen('/broken')).toBe('ECONNRESET\nbroken\n');
      expect(await sharedConnections()).toBe(0);
    });

    test('the engine copies bytes only if the relay cannot reach the socket', async () => {
      const request = relayed.nextRequest();
      const asked = relayed.shell('curl -s $ORIGIN/');
      const { response } = await request;
      expect(await sharedConnections()).toBe(way === 'socket' ? 1 : 0);
      response.end('here');
      expect(await asked).toBe('here');
    });
  });
});

/** The socket on this machine that the relay mounts. */
async function sharedSocket(): Promise<string> {
  const [id = ''] = await relayed.sidecars();
  const { Mounts } = await dockerOf(relayed.engine).getContainer(id).inspect();
  expect(Mounts).toMatchObject([{ Type: 'bind', RW: false }]);
  return join(Mounts[0]?.Source ?? '', 'socket');
}

/** How many connections of the relay it has. The kernel counts them in the sandbox's network. */
async function sharedConnections(): Promise<number> {
  const socket = await sharedSocket();
  const lines = (await relayed.shell('cat /proc/net/unix')).split('\n');
  return lines.filter((line) => line.endsWith(` ${socket}`)).length;
}
