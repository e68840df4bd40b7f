import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { openClient } from '../../src/engine/docker/client.ts';
import { podmanImages } from '../../src/engine/podman/archives.ts';

/** An engine that gives one answer, and keeps what it was sent. */
async function answering(status: number, answer: object) {
  const asked: { url: URL; type: string | undefined; body: string }[] = [];
  const server = createServer(async (request, response) => {
    const body = (await buffer(request)).toString();
    const url = new URL(request.url ?? '', 'http://engine');
    asked.push({ url, type: request.headers['content-type'], body });
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const client = openClient({ kind: 'http', host: '127.0.0.1', port }, systemClock);
  return {
    asked,
    images: podmanImages({ docker: client, native: client }),
    async [Symbol.asyncDispose]() {
      client.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const request = () => ({
  root: Readable.from([Buffer.from('the '), Buffer.from('archive')]),
  name: 'offsite/base:made',
  env: { PATH: '/bin:/opt' },
  command: ['sleep', 'infinity'],
  labels: { 'offsite.kind': 'base & more' },
});

test('Podman gets an image with its tag, its settings and its files', async () => {
  await using engine = await answering(200, { Id: 'sha256:1' });
  await engine.images.import(request());
  expect(engine.asked).toHaveLength(1);
  const [{ url, type, body } = { url: new URL('none:'), type: '', body: '' }] = engine.asked;
  expect(url.pathname).toBe('/libpod/images/import');
  expect(url.searchParams.get('reference')).toBe('offsite/base:made');
  expect(url.searchParams.getAll('changes')).toEqual([
    'ENV PATH="/bin:/opt"',
    'CMD ["sleep","infinity"]',
    'LABEL offsite.kind="base & more"',
  ]);
  expect(type).toBe('application/tar');
  expect(body).toBe('the archive');
});

test('what Podman refuses to import is told with its reason', async () => {
  await using engine = await answering(500, { message: 'no space left on device' });
  await expect(engine.images.import(request())).rejects.toThrow(
    'while importing offsite/base:made as an image: no space left on device',
  );
});
