import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { serverOf } from '../../gateway/probe/model-servers.ts';
import { scriptedServer } from '../../gateway/probe/scripted-server.ts';
import type { Step } from '../../gateway/test-upstream.ts';
import { openPlace, type Place } from '../place.ts';
import { modelsIn } from './models-in-process.ts';

function placeOf(baseUrl: string): Place {
  const place = openPlace();
  place.write('offsite.yaml', stringify({ models: { mine: { wire: 'openai-chat', baseUrl } } }));
  return place;
}

const commands = [
  ['check', 'mine', '--timeout', '1'],
  ['bench', 'mine', '--timeout', '1', '--parallel', '1', '--requests', '1'],
];

describe.each(commands)('models %s', (...args) => {
  const page: Step = (response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!DOCTYPE html><h1>Hello</h1>');
  const away: Step = (response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end();
  const silent: Step = () => undefined;

  test.each([
    ['a web page', page, /not valid in openai-chat|not a stream, but text\/html/],
    ['a redirect', away, /302|redirect/],
    ['nothing', silent, /did not answer within 1 s/],
  ])('ends with exit code 3 where the answer is %s', async (_, step, message) => {
    await using server = await serverOf({}, step);
    using place = placeOf(`http://127.0.0.1:${server.port}/v1`);
    const { exitCode, stdout, stderr } = await modelsIn(place, [...args]);
    expect({ exitCode, stdout, stderr }).toEqual({
      exitCode: 3,
      stdout: '',
      stderr: expect.stringMatching(message),
    });
    expect(stderr).not.toContain('defect of Offsite');
  });

  test('says what to do about a certificate that nobody knows', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'offsite-tls-'));
    const openssl = execa({ cwd: folder });
    await openssl`openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout key.pem -out cert.pem -addext subjectAltName=DNS:localhost`;
    const [key, cert] = await Promise.all(
      ['key.pem', 'cert.pem'].map((name) => readFile(join(folder, name))),
    );
    const server = createServer({ key, cert }, (_request, response) => response.end('{}'));
    await new Promise<void>((resolve) => server.listen(0, resolve));
    using place = placeOf(`https://localhost:${(server.address() as AddressInfo).port}/v1`);
    try {
      const { exitCode, stderr } = await modelsIn(place, [...args.slice(0, 2), '--timeout', '30']);
      expect({ exitCode, stderr }).toEqual({ exitCode: 3, stderr: expect.stringContaining('caBundle') });
    } finally {
      server.closeAllConnections();
      server.close();
      await rm(folder, { recursive: true });
    }
  });
});

test('a stream that never ends is cut off, and is a finding', async () => {
  const turns = [
    { when: { user: 'Sample' }, text: 'word', trouble: { neverEnding: true } },
    { text: 'ready', repeat: true },
  ];
  await using server = await scriptedServer({ turns });
  using place = placeOf(`http://127.0.0.1:${server.port}/v1`);
  const { exitCode, stdout } = await modelsIn(place, ['check', 'mine', '--timeout', '20', '--json']);
  expect(exitCode).toBe(1);
  expect(JSON.parse(stdout).examined.speed).toMatchObject({ streaming: 'failed', samples: 0 });
});
