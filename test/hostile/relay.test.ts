import { once } from 'node:events';
import { connect as connectSocket } from 'node:net';
import { expect, test } from 'vitest';
import { frame, opening, preface, reset } from './frames.ts';
import { relayProcess } from './relay-process.ts';

const timeout = 120_000;

test('connections that are reset as they open do not end the process, and others are served', {
  timeout,
}, async () => {
  await using agent = await relayProcess();
  const socket = connectSocket(agent.port, '127.0.0.1')
    .on('error', () => undefined)
    .resume();
  await once(socket, 'connect');
  socket.write(preface);
  for (let round = 0; round < 20; round += 1) {
    const together = Array.from({ length: 50 }, (_, index) => {
      const stream = 2 * (round * 50 + index) + 1;
      return Buffer.concat([
        opening(stream),
        frame('data', 0, stream, Buffer.from('GET / HTTP/1.1\r\n')),
        reset(stream),
      ]);
    });
    socket.write(Buffer.concat(together));
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  using honest = await agent.trial();
  expect((await honest.ask('scripted')).body.choices[0].message.content).toBe('well served');
  expect(agent.said()).toBe('');
  socket.destroy();
});
