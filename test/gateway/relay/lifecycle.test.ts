import { once } from 'node:events';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import type { ContainerSpec } from '../../../src/engine/container/container-spec.ts';
import type { RelayHandler } from '../../../src/gateway/relay/relay.ts';
import { startRelay } from '../../../src/gateway/relay/start-relay.ts';
import { dockerOf } from '../../engine/docker-of.ts';
import { startedContainer, testSpec } from '../../engine/engine-fixture.ts';
import { hangMs, type RelayedSandbox, relayedSandbox } from './relayed-sandbox.ts';

vi.setConfig({ testTimeout: hangMs });

const nobody: RelayHandler = { request: () => undefined, connect: () => undefined };

let relayed: RelayedSandbox;
beforeAll(async () => {
  relayed = await relayedSandbox();
});
afterAll(() => relayed[Symbol.asyncDispose]());

/** Asks until the relay is there again. */
const askAgain = 'curl -s --retry 1000 --retry-delay 1 --retry-all-errors --retry-max-time 150 $ORIGIN/';

test('of all networks and ports a sandbox has its own loopback, and there the relay', async () => {
  const printed = await relayed.shell(
    // Of /proc/net/tcp: what listens (0A), as hexadecimal address and port.
    'ls /sys/class/net; tail -n +2 /proc/net/route | wc -l; cat /proc/net/tcp /proc/net/tcp6 | awk \'$4 == "0A" { print $2 }\'',
  );
  const port = Number(new URL(relayed.relay.origin).port).toString(16).toUpperCase();
  expect(printed).toBe(`lo\n0\n0100007F:${port}\n`);
});

test('a sidecar has no rights, writes nowhere and is small', async () => {
  const [id = ''] = await relayed.sidecars();
  const { Config, HostConfig } = await dockerOf(relayed.engine).getContainer(id).inspect();
  expect(Config.User).toBe('65534:65534');
  expect(HostConfig).toMatchObject({
    ReadonlyRootfs: true,
    CapDrop: ['ALL'],
    SecurityOpt: ['no-new-privileges', expect.stringMatching(/^seccomp=\{/)],
    PidsLimit: 32,
    NetworkMode: 'none',
  });
  expect(HostConfig.Memory).toBeLessThanOrEqual(512 * 2 ** 20);
});

test('if a relay is killed, the request in flight fails and another one in the same network serves the next', async () => {
  const network = 'readlink /proc/self/ns/net';
  const before = await relayed.shell(network);
  const [killed = ''] = await relayed.sidecars();
  const arrived = relayed.nextRequest();
  const failing = relayed.shell('curl -s $ORIGIN/; echo $?');
  const { response: held } = await arrived;
  const closed = once(held, 'close');
  await dockerOf(relayed.engine).getContainer(killed).kill();
  await closed;
  expect(await failing).toMatch(/^(52|56)\n$/);
  relayed.answer((_request, response) => response.end('again'));
  expect(await relayed.shell(askAgain)).toBe('again');
  expect(relayed.relay.lost.aborted).toBe(false);
  const [id = ''] = await relayed.sidecars();
  const { HostConfig } = await dockerOf(relayed.engine).getContainer(id).inspect();
  expect(HostConfig.NetworkMode).toBe(`container:${relayed.sandbox.id}`);
  expect(await relayed.shell(network)).toBe(before);
});

test('a relay that dies again and again is lost, and says why', async () => {
  await using own = await relayedSandbox();
  const lost = once(own.relay.lost, 'abort');
  while (!own.relay.lost.aborted) {
    const [id] = await own.sidecars();
    // Between two of them there is none, or one that does not run yet.
    if (id)
      await dockerOf(own.engine)
        .getContainer(id)
        .kill()
        .catch(() => undefined);
  }
  await lost;
  expect(own.relay.lost.reason).toMatchObject({ code: 'RELAY_LOST', kind: 'infrastructure' });
  expect(await own.sidecars()).toEqual([]);
});

test('disposing ends the sidecar and the requests in flight, however often', async () => {
  await using own = await relayedSandbox();
  const arrived = own.nextRequest();
  const failing = own.shell('curl -s $ORIGIN/; echo $?');
  const { response } = await arrived;
  const closed = once(response, 'close');
  await own.relay[Symbol.asyncDispose]();
  await own.relay[Symbol.asyncDispose]();
  await closed;
  expect(await failing).toMatch(/^(52|56)\n$/);
  expect(await own.sidecars()).toEqual([]);
  expect(own.relay.lost.aborted).toBe(false);
});

test('without a relay there is no sandbox, and nothing is left of either', async () => {
  const { engine } = relayed;
  const { imageId: image, ...spec } = await testSpec(engine);
  const request = {
    network: 'none',
    image,
    handler: nobody,
    labels: {},
    clock: systemClock,
  } as const;
  const signal = AbortSignal.timeout(hangMs);
  const make = (network: ContainerSpec['network']) =>
    engine.createContainer({ ...spec, imageId: image, network, labels: { 'test.part': 'relay' } });
  const before = await relayed.sidecars();

  const hopeless = startRelay(engine, { ...request, image: `sha256:${'0'.repeat(64)}` }, signal);
  await expect(hopeless.startSandbox(make, signal)).rejects.toMatchObject({ code: 'RELAY_LOST' });
  await expect(hopeless.ready).rejects.toMatchObject({ code: 'RELAY_LOST', kind: 'infrastructure' });
  expect(hopeless.lost.aborted).toBe(true);

  const stop = new AbortController();
  const stopped = startRelay(engine, request, stop.signal);
  stop.abort(new Error('the trial was canceled'));
  await expect(stopped.startSandbox(make, signal)).rejects.toThrow('the trial was canceled');
  await expect(stopped.ready).rejects.toThrow('the trial was canceled');
  expect(stopped.lost.aborted).toBe(false);

  await using relay = startRelay(engine, request, signal);
  const unstarted = relay.startSandbox(make, AbortSignal.abort(new Error('the sandbox was canceled')));
  await expect(unstarted).rejects.toThrow('the sandbox was canceled');
  expect(await relayed.sidecars()).toEqual(before);
});

test('a sandbox with a kernel of its own must reach the relay, or is refused before its harness starts', async () => {
  const { engine } = relayed;
  const { imageId: image, ...spec } = await testSpec(engine);
  const signal = AbortSignal.timeout(hangMs);
  await using relay = startRelay(
    engine,
    { network: 'none', image, handler: nobody, labels: {}, clock: systemClock },
    signal,
  );
  const containers: string[] = [];
  const makeWith = (shares: boolean) => async (network: ContainerSpec['network']) => {
    const made = { ...spec, imageId: image, network: shares ? network : ('none' as const) };
    const container = await engine.createContainer(made);
    containers.push(container.id);
    return { ...container, listsProcesses: false };
  };
  await expect(relay.startSandbox(makeWith(false), signal)).rejects.toMatchObject({
    code: 'RELAY_OUT_OF_REACH',
    kind: 'input',
  });
  const inspected = dockerOf(engine)
    .getContainer(containers[0] ?? '')
    .inspect();
  await expect(inspected).rejects.toMatchObject({ statusCode: 404 });
  await using reaching = await relay.startSandbox(makeWith(true), signal);
  expect(reaching.id).toBe(containers[1]);
});

test('a process in the sandbox that occupies the port is not taken for the relay', async () => {
  const { engine } = relayed;
  const sandbox = await startedContainer(engine);
  const port = new URL(relayed.relay.origin).port;
  const listen = `require('net').createServer().listen(${port}, '127.0.0.1', () => console.log('up'))`;
  const up = Promise.withResolvers<void>();
  const leave = new AbortController();
  const taking = sandbox.exec({
    argv: ['node', '-e', listen],
    timeoutMs: hangMs,
    signal: leave.signal,
    onOutput: () => up.resolve(),
  });
  await up.promise;
  const { imageId: image } = await testSpec(engine);
  await using relay = startRelay(
    engine,
    {
      network: { sharedWith: sandbox.id },
      image,
      handler: nobody,
      labels: {},
      clock: systemClock,
    },
    AbortSignal.timeout(hangMs),
  );
  await expect(relay.ready).rejects.toThrow('EADDRINUSE');
  leave.abort();
  await taking;
});

test('a sidecar ends by itself when its agent was killed', async () => {
  const script = new URL('relaying-agent.ts', import.meta.url).pathname;
  const agent = execa(process.execPath, [script], { reject: false });
  const [line] = await once(agent.stdout, 'data');
  const { sidecar, instance } = JSON.parse(String(line)) as { sidecar: string; instance: string };
  const docker = dockerOf(relayed.engine);
  try {
    const ended = docker.getContainer(sidecar).wait();
    agent.kill('SIGKILL');
    await agent;
    expect(await ended).toMatchObject({ StatusCode: 0 });
  } finally {
    const left = await docker.listContainers({
      all: true,
      filters: { label: [`offsite.instance=${instance}`] },
    });
    // A process of Offsite that starts meanwhile removes them too.
    await Promise.allSettled(left.map(({ Id }) => docker.getContainer(Id).remove({ force: true })));
  }
});
