import { expect, test } from 'vitest';
import { openRoom } from '../../src/gateway/room.ts';
import { gatewayClock } from './gateway-clock.ts';

const { signal } = new AbortController();

test('one trial gets half of the room, two get a third each, and there is always some left', () => {
  const room = openRoom(gatewayClock(), 1200);
  const [one, two, three] = [room.share(), room.share(), room.share()].map((share) => share.hold());
  expect(one?.resize(600, signal)).toBeUndefined();
  expect(two?.resize(300, signal)).toBeUndefined();
  expect(three?.resize(150, signal)).toBeUndefined();
  expect(room.held).toBe(1050);
  for (const hold of [one, two, three]) hold?.[Symbol.dispose]();
  expect(room.held).toBe(0);
});

test('a request for too much waits, blocks no smaller one, and is refused after a timeout', async () => {
  const clock = gatewayClock();
  const room = openRoom(clock, 1000);
  const [greedy, modest] = [room.share(), room.share()];
  const held = greedy.hold();
  expect(held.resize(500, signal)).toBeUndefined();
  const more = greedy.hold();
  const waiting = more.resize(400, signal);
  expect(waiting).toBeInstanceOf(Promise);
  expect(modest.hold().resize(100, signal)).toBeUndefined();
  held[Symbol.dispose]();
  await waiting;
  expect(room.held).toBe(500);

  const late = greedy.hold().resize(400, signal);
  const refused = expect(late).rejects.toMatchObject({ status: 503, code: 'NO_ROOM' });
  await new Promise((resolve) => setImmediate(resolve));
  clock.advance(30_000);
  await refused;
  expect(room.held).toBe(500);
});
