import { once } from 'node:events';
import { connect as connectSocket, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { frame, opening, preface, reset } from './frames.ts';
import { hostileBytes, type Seeded, seeded } from './fuzz.ts';
import { type RelayProcess, relayProcess } from './relay-process.ts';

/** Milliseconds; only a hang reaches them. */
const timeout = 300_000;
const seed = 20_261_122;

/** What the process held before comes back, but for what Node and V8 keep for the next time. */
const keptMiB = 120;
const keptHandles = 4;

async function stillWell(agent: RelayProcess, before: { rss: number; handles: number }): Promise<void> {
  {
    using honest = await agent.trial();
    const answer = await honest.ask('scripted');
    expect(answer.body.choices[0].message.content).toBe('well served');
  }
  expect(agent.said()).toBe('');
  await expect
    .poll(async () => (await agent.state()).handles, { timeout: 20_000 })
    .toBeLessThanOrEqual(before.handles + keptHandles);
  expect((await agent.state()).rss - before.rss).toBeLessThan(keptMiB * 2 ** 20);
}

async function warmedUp(): Promise<{ agent: RelayProcess; before: { rss: number; handles: number } }> {
  const agent = await relayProcess();
  {
    using first = await agent.trial();
    await first.ask('scripted');
  }
  return { agent, before: await agent.state() };
}

test('5,000 hostile connections through relays leave the process as it was', { timeout }, async () => {
  const random = seeded(seed);
  const { agent, before } = await warmedUp();
  await using _agent = agent;
  for (let trial = 0; trial < 10; trial += 1) {
    using honest = await agent.trial();
    const { token } = honest;
    const socket = await rawSession(agent.port);
    for (let at = 0; at < 500; at += 1) {
      socket.write(hostileConnection(random, 2 * at + 1, token));
      if (at % 25 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    }
    expect((await honest.ask('scripted')).status).toBe(200);
    // Nothing that one connection said has ended the others of its sandbox.
    expect(agent.said()).toBe('');
    expect(socket.destroyed).toBe(false);
    socket.destroy();
  }
  await stillWell(agent, before);
});

test('2,000 sessions of garbage below HTTP/2, cut at every byte, leave the process as it was', {
  timeout,
}, async () => {
  const random = seeded(seed + 1);
  const { agent, before } = await warmedUp();
  await using _agent = agent;
  const good = Buffer.concat([preface, opening(1), frame('data', 0, 1, hostileBytes(random)), reset(1)]);
  for (let at = 0; at < 2_000; at += 20) {
    const sockets = await Promise.all(Array.from({ length: 20 }, () => open(agent.port)));
    for (const [index, socket] of sockets.entries()) {
      const cut = Buffer.from(good.subarray(0, (at + index) % (good.length + 1)));
      if (cut.length > 0 && random.below(2) === 0) cut[random.below(cut.length)] = random.below(256);
      socket.write(Buffer.concat([cut, random.bytes(random.below(40))]));
      if (random.below(2) === 0) socket.resetAndDestroy();
      else setTimeout(() => socket.destroy(), random.below(20));
    }
    await Promise.all(sockets.map((socket) => (socket.closed ? undefined : once(socket, 'close'))));
  }
  await stillWell(agent, before);
});

/** Frames of one connection of the sandbox's: opened, something said, and ended in one way or another. */
function hostileConnection(random: Seeded, stream: number, token: string): Buffer {
  const said = frame('data', 0, stream, hostileBytes(random, token));
  const ends = [reset(stream, random.below(14)), frame('data', 1, stream), Buffer.alloc(0)];
  const parts = [opening(stream), said, random.pick(ends)];
  return Buffer.concat(random.below(5) === 0 ? [opening(stream), reset(stream, random.below(14))] : parts);
}

async function open(port: number): Promise<Socket> {
  const socket = connectSocket(port, '127.0.0.1').resume();
  socket.on('error', () => socket.destroy());
  await once(socket, 'connect');
  return socket;
}

async function rawSession(port: number): Promise<Socket> {
  const socket = await open(port);
  socket.write(preface);
  return socket;
}
