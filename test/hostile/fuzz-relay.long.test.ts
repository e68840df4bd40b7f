import { once } from 'node:events';
import { connect as connectSocket, type Socket } from 'node:net';
import { expect, test, vi } from 'vitest';
import { frame, opening, preface, reset } from './frames.ts';
import { hostileBytes, type Seeded, seeded } from './fuzz.ts';
import { knockOften } from './knock.ts';
import { type Held, type RelayProcess, relayProcess } from './relay-process.ts';

/** Milliseconds; only a hang reaches them. */
const timeout = 300_000;
const seed = 20_261_122;

/** In bytes: what a round of at least 1,000 connections may leave alive when it has stopped growing. */
const leftAlive = 2 ** 20;
/** In bytes: what the whole process may grow by in a round that left nothing. */
const leftInAll = 2 * 2 ** 20;
/** A process that still grew in the last of them grows without end. */
const mostRounds = 10;

/**
 * Sends `round` at a process twice, and further times while it grows. The first rounds may leave what is there
 * for the next time, such as compiled code, and the process keeps the room of what is freed. But it would not
 * stop growing if each round left something behind.
 */
async function withstands(agent: RelayProcess, round: () => Promise<void>): Promise<void> {
  const { handles } = await agent.held();
  const afterRound = async () => {
    await round();
    return settled(agent, handles);
  };
  let before = await afterRound();
  for (let rounds = 2, grows = true; grows; rounds += 1) {
    const after = await afterRound();
    // A round may be the first that runs some of the code; what leaks grows in each.
    grows = after.alive - before.alive >= leftAlive || after.resident - before.resident > leftInAll;
    const held = `${after.alive} bytes alive, ${after.resident} in all`;
    expect(grows && rounds === mostRounds, `it still grows: ${held}`).toBe(false);
    before = after;
  }
}

/** What a process holds once it has served an honest trial, and no connection is left. */
async function settled(agent: RelayProcess, idleHandles: number): Promise<Held> {
  {
    using honest = await agent.trial();
    const answer = await honest.ask('scripted');
    expect(answer.body.choices[0].message.content).toBe('well served');
  }
  expect(agent.said()).toBe('');
  return vi.waitFor(async () => {
    const held = await agent.held();
    expect(held.handles).toBeLessThanOrEqual(idleHandles);
    return held;
  }, 60_000);
}

test('5,000 hostile connections through relays leave the process as it was', { timeout }, async () => {
  const random = seeded(seed);
  await using agent = await relayProcess();
  await withstands(agent, async () => {
    for (let trial = 0; trial < 5; trial += 1) {
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
  });
});

test('5,000 hostile connections to a shared socket leave the process as it was', { timeout }, async () => {
  const random = seeded(seed + 2);
  await using agent = await relayProcess();
  await withstands(agent, async () => {
    using honest = await agent.trial('over a shared socket');
    await knockOften(random, { path: honest.shared }, 2_500, honest.token);
    expect((await honest.ask('scripted')).status).toBe(200);
    expect(agent.said()).toBe('');
  });
});

test('2,000 sessions of garbage below HTTP/2, cut at every byte, leave the process as it was', {
  timeout,
}, async () => {
  const random = seeded(seed + 1);
  await using agent = await relayProcess();
  const good = Buffer.concat([preface, opening(1), frame('data', 0, 1, hostileBytes(random)), reset(1)]);
  await withstands(agent, async () => {
    for (let at = 0; at < 1_000; at += 20) {
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
  });
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
