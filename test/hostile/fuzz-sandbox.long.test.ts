import { expect, test } from 'vitest';
import { relayedSandbox } from '../gateway/relay/relayed-sandbox.ts';

/** Opens connections and resets them as they open, half way, or after garbage; prints how many there were. */
const attack = `
import { connect } from 'node:net';
let state = 20261122;
const below = (most) => {
  state = (Math.imul(state, 1103515245) + 12345) >>> 0;
  return Math.floor((state / 2 ** 32) * most);
};
const request = 'POST /v1/chat/completions HTTP/1.1\\r\\nhost: model\\r\\ncontent-length: 40\\r\\n\\r\\n{"model":"x"';
let done = 0;
const knock = () => new Promise((resolve) => {
  const socket = connect({ port: Number(process.env.PORT), host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => undefined).once('close', () => { done += 1; resolve(); }).resume();
  socket.setTimeout(3000, () => socket.destroy());
  const bytes = below(2) ? request.slice(0, below(request.length)) : Buffer.from(Array.from({ length: below(80) }, () => below(256)));
  const how = below(4);
  socket.once('connect', () => {
    if (how === 0) return socket.resetAndDestroy();
    socket.write(bytes);
    if (how === 1) socket.resetAndDestroy();
    else if (how === 2) setTimeout(() => socket.resetAndDestroy(), below(30));
    else socket.end();
  });
});
let left = 1000;
await Promise.all(Array.from({ length: 40 }, async () => {
  while (left-- > 0) await knock();
}));
console.log(done);
`;

test('1,000 hostile connections from a sandbox end neither its relay nor the agent', async () => {
  await using relayed = await relayedSandbox();
  relayed.answer((request, response) => {
    request.resume();
    response.end('well served\n');
  });
  const before = await relayed.sidecars();
  expect(await relayed.module(attack)).toBe('1000\n');
  expect(
    await relayed.shell(
      'curl -s "$ORIGIN/" || node -e "fetch(process.env.ORIGIN).then(async (a) => console.log((await a.text()).trim()))"',
    ),
  ).toBe('well served\n');
  expect(await relayed.sidecars()).toEqual(before);
  expect(relayed.relay.lost.aborted).toBe(false);
});
