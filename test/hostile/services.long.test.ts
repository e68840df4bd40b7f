import { networkInterfaces } from 'node:os';
import { expect, test } from 'vitest';
import { relayPort } from '../../src/gateway/relay/relay.ts';
import { noEnvironment } from '../../src/suite/environment.ts';
import { scriptedModels } from '../trial/scripted-models.ts';
import { bench, sharedBench } from '../trial/shared-bench.ts';

/**
 * The agent opens a port for the service, waits for what it found, and looks whether its own relay answers.
 */
const agent = `
node -e "require('net').createServer((s) => s.end('hi')).listen(8000, '0.0.0.0')" > /dev/null 2>&1 &
until curl -sf db/found > found; do sleep 0.2; done
curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:${relayPort}/v1/models > relay
`;

/** A service that the agent has taken over: it connects wherever it can, and serves what came of it. */
const takenOver = (targets: string[]) => `
const net = require('node:net');
const tried = (target) => new Promise((resolve) => {
  const [host, port] = target.split(' ');
  const socket = net.connect({ host, port: Number(port), timeout: 5000 });
  socket.on('connect', () => { socket.destroy(); resolve('connected'); });
  socket.on('timeout', () => { socket.destroy(); resolve('timeout'); });
  socket.on('error', (error) => resolve(error.code ?? error.errors?.[0]?.code));
});
const until = async (target) => {
  while ((await tried(target)) !== 'connected') await new Promise((wake) => setTimeout(wake, 200));
};
let found;
require('node:http').createServer((request, response) => {
  response.writeHead(found ? 200 : 404).end(JSON.stringify(found));
}).listen(80);
until('sandbox 8000').then(async () => {
  const all = {};
  for (const target of ${JSON.stringify(targets)}) all[target] = await tried(target);
  found = all;
});`;

const models = scriptedModels({ model: 'turns: [{ text: Nobody asks. }]' });
sharedBench({ models });

test('a service that the agent has taken over reaches the sandbox, but not its models, and nothing else', async () => {
  const host = Object.values(networkInterfaces())
    .flatMap((interfaces) => interfaces ?? [])
    .filter(({ internal, family }) => !internal && family === 'IPv4')
    .map(({ address }) => `${address} 22`);
  const outside = [...host, '169.254.169.254 80', '172.17.0.1 22', '1.1.1.1 53'];
  const relays = [`sandbox ${relayPort}`, `127.0.0.1 ${relayPort}`, `main ${relayPort}`];
  const targets = ['sandbox 8000', ...relays, ...outside, 'example.com 80', '10.213.0.1 22'];
  const result = await bench.trial(
    agent,
    {
      model: 'model',
      modelConfig: models.model,
      artifacts: ['found', 'relay'],
      environment: {
        ...noEnvironment,
        nameForServices: 'main',
        services: [
          {
            name: 'db',
            aliases: [],
            env: {},
            dependsOn: [],
            memoryFolders: [],
            resources: {},
            image: { name: 'offsite/base', place: 'suite.yaml:9:5' },
            command: ['node', '-e', takenOver(targets)],
            place: 'suite.yaml:8:5',
          },
        ],
      },
      // No harness's process is left, and the relay is closed to it.
      verify: 'curl -sf db/found > /dev/null',
    },
    { memory: 1024 ** 3 },
  );
  expect(result.cause).toBeUndefined();
  expect(result.verdict).toBe('passed');
  const text = (path: string) =>
    bench.blobs.read(result.artifacts?.find((artifact) => artifact.path === path)?.sha256 ?? '').toString();
  const found = JSON.parse(text('found'));
  expect(found['sandbox 8000']).toBe('connected');
  for (const relay of relays) expect(found[relay], relay).toBe('ECONNREFUSED');
  for (const target of outside) expect(found[target], target).toBe('ENETUNREACH');
  expect(found['example.com 80']).toMatch(/^(EAI_AGAIN|ENOTFOUND)$/);
  expect(found['10.213.0.1 22']).not.toBe('connected');
  // The relay is there, on the loopback of the sandbox.
  expect(text('relay')).toMatch(/^[24]\d\d$/);
});
