import { once } from 'node:events';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { hangMs, type RelayedSandbox, relayedSandbox } from './relayed-sandbox.ts';

vi.setConfig({ testTimeout: hangMs });

let relayed: RelayedSandbox;
beforeAll(async () => {
  relayed = await relayedSandbox();
});
afterAll(() => relayed[Symbol.asyncDispose]());

test('a tunnel carries bytes both ways, and each end can finish by itself', async () => {
  const request = relayed.nextRequest();
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
  const { stream, headers } = await request;
  expect(headers).toMatchObject({
    ':method': 'CONNECT',
    ':authority': 'host.test:443',
    'proxy-authorization': 'Basic x',
  });
  stream.respond({ ':status': 200 });
  for await (const chunk of stream.iterator({ destroyOnReturn: false })) stream.write(chunk);
  stream.end(' bye');
  expect(await ended).toBe('HTTP/1.1 200 OK\r\n\r\nearly late bye\n');
});

test('a tunnel that is refused, cut or left shows so at its other end', async () => {
  relayed.answer((stream, headers) => {
    if (headers[':authority'] === 'cut.test:1') {
      stream.respond({ ':status': 200 });
      stream.write('half', () => stream.destroy(new Error('the host is gone')));
      return;
    }
    stream.respond({ ':status': 403, 'content-type': 'text/plain' });
    stream.end('not on the list');
  });
  const refused = await relayed.shell('curl -sv -p -x $ORIGIN http://refused.test/ 2>&1; echo $?');
  expect(refused).toMatch(/HTTP\/1.1 403 Forbidden[\s\S]*\n56\n$/);
  const cut = await relayed.shell('curl -s -p -x $ORIGIN http://cut.test:1/ 2>&1; echo $?');
  expect(cut).not.toMatch(/\n0\n$/);
  const strange = await relayed.shell(
    `printf 'CONNECT host HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n' > /dev/tcp/127.0.0.1/$PORT && curl -s -p -x $ORIGIN http://refused.test/; echo`,
  );
  expect(strange).toBe('\n');
  const left = relayed.nextRequest();
  const leave = new AbortController();
  const ended = relayed.shell('curl -s -p -x $ORIGIN http://left.test/', undefined, leave.signal);
  const { stream } = await left;
  stream.respond({ ':status': 200 });
  const gone = once(stream.resume(), 'end');
  leave.abort();
  await gone;
  stream.end();
  await ended;
});
