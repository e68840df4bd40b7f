import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectEngine } from '../../src/engine/connect.ts';
import { shell, startedContainer } from './engine-fixture.ts';
import { tinyImage } from './faults/tiny-image.ts';
import { type TlsEngine, tlsEngine } from './tls-engine.ts';

let tls: TlsEngine;
beforeAll(async () => {
  tls = await tlsEngine();
  await tls.own.start();
});
afterAll(() => tls?.[Symbol.asyncDispose](), 120_000);

const connect = (certificates: string) =>
  connectEngine({ host: tls.host, certificates, instance: 'test-tls' });

test('a real dockerd with --tlsverify runs commands over TLS', async () => {
  await using near = await connectEngine({ host: tls.own.host, instance: 'test-tls-near' });
  // In place of the base image, which is large.
  await execa('docker', ['--host', tls.own.host, 'tag', await tinyImage(near), 'offsite/base']);
  await using engine = await connect(tls.certificates.client);
  await using container = await startedContainer(engine);
  const { stdout, exitCode } = await shell(container, 'echo over TLS; exit 3');
  expect([exitCode, stdout.text]).toEqual([3, 'over TLS\n']);
});

test('DOCKER_TLS_VERIFY and DOCKER_CERT_PATH name the same certificates', async () => {
  const { host, certificates } = tls;
  const env = { DOCKER_HOST: host, DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: certificates.client };
  await using engine = await connectEngine({ env, instance: 'test-tls-env' });
  expect(await engine.findImage('no/such-image:ever')).toBeUndefined();
});

test('a server of another authority, or a client that it does not know, is refused', async () => {
  const { stranger, mixed } = tls.certificates;
  for (const certificates of [stranger, mixed]) {
    await expect(connect(certificates), certificates).rejects.toMatchObject({
      code: 'ENGINE_UNREACHABLE',
      kind: 'infrastructure',
    });
  }
});
