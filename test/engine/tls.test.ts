import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectEngine } from '../../src/engine/connect.ts';
import { freePort } from '../free-port.ts';
import { shell, startedContainer } from './engine-fixture.ts';
import { type OwnEngine, ownEngine } from './faults/own-engine.ts';
import { tinyImage } from './faults/tiny-image.ts';

// A dockerd of the test's own with --tlsverify, and certificates of two authorities.
let folder: string;
let own: OwnEngine;
let host: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'offsite-tls-'));
  await authority('ours');
  await authority('another');
  await certificate('server', 'ours', 'subjectAltName=IP:127.0.0.1');
  await certificate('client', 'ours', 'extendedKeyUsage=clientAuth');
  await certificate('stranger', 'another', 'extendedKeyUsage=clientAuth');
  const port = await freePort();
  host = `tcp://127.0.0.1:${port}`;
  const server = join(folder, 'server');
  own = await ownEngine({
    args: [
      ...['--host', host, '--tlsverify', '--tlscacert', join(server, 'ca.pem')],
      ...['--tlscert', join(server, 'cert.pem'), '--tlskey', join(server, 'key.pem')],
    ],
  });
  await own.start();
}, 180_000);
afterAll(async () => {
  await own?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
}, 120_000);

const connect = (certificates: string) =>
  connectEngine({ host, certificates: join(folder, certificates), instance: 'test-tls' });

test('a real dockerd with --tlsverify runs commands over TLS', async () => {
  await using near = await connectEngine({ host: own.host, instance: 'test-tls-near' });
  // In place of the base image, which is large.
  await execa('docker', ['--host', own.host, 'tag', await tinyImage(near), 'offsite/base']);
  await using engine = await connect('client');
  await using container = await startedContainer(engine);
  const { stdout, exitCode } = await shell(container, 'echo over TLS; exit 3');
  expect([exitCode, stdout.text]).toEqual([3, 'over TLS\n']);
}, 180_000);

test('DOCKER_TLS_VERIFY and DOCKER_CERT_PATH name the same certificates', async () => {
  const env = { DOCKER_HOST: host, DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: join(folder, 'client') };
  await using engine = await connectEngine({ env, instance: 'test-tls-env' });
  expect(await engine.findImage('no/such-image:ever')).toBeUndefined();
}, 60_000);

test('a server of another authority, or a client that it does not know, is refused', async () => {
  // The first trusts only the other authority, the second has a certificate of it.
  for (const certificates of ['stranger', await mixed()]) {
    await expect(connect(certificates), certificates).rejects.toMatchObject({
      code: 'ENGINE_UNREACHABLE',
      kind: 'infrastructure',
    });
  }
}, 60_000);

async function authority(name: string): Promise<void> {
  const at = join(folder, name);
  await openssl(['req', '-x509', '-days', '2', '-subj', `/CN=${name}`, '-keyout', `${at}.key`, '-out', at]);
}

async function certificate(name: string, issuer: string, extension: string): Promise<void> {
  const own = join(folder, name);
  await mkdir(own);
  const [request, extensions] = [join(own, 'request.pem'), join(own, 'extensions')];
  await openssl(['req', '-subj', `/CN=${name}`, '-keyout', join(own, 'key.pem'), '-out', request]);
  await writeFile(extensions, extension);
  const by = join(folder, issuer);
  await execa('openssl', [
    ...['x509', '-req', '-in', request, '-CA', by, '-CAkey', `${by}.key`, '-CAcreateserial', '-days', '2'],
    ...['-extfile', extensions, '-out', join(own, 'cert.pem')],
  ]);
  await execa('cp', [by, join(own, 'ca.pem')]);
}

/** The stranger's certificate, and trust in the right authority. */
async function mixed(): Promise<string> {
  await execa('cp', ['-r', join(folder, 'stranger'), join(folder, 'mixed')]);
  await execa('cp', [join(folder, 'ours'), join(folder, 'mixed/ca.pem')]);
  return 'mixed';
}

function openssl([command = '', ...args]: string[]) {
  return execa('openssl', [command, '-newkey', 'rsa:2048', '-nodes', ...args]);
}
