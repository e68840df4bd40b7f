import { connect, type Socket } from 'node:net';
import { hostileBytes, type Seeded } from './fuzz.ts';

/** Milliseconds that a connection may take. */
const longestMs = 5_000;

/**
 * One hostile connection to a port or a socket of this machine: it is reset, left half open for a while, or
 * sends garbage.
 */
async function knock(random: Seeded, to: { port: number } | { path: string }, token?: string): Promise<void> {
  const socket: Socket = connect({
    ...('port' in to ? { ...to, host: '127.0.0.1' } : to),
    allowHalfOpen: true,
  });
  const over = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.on('error', () => socket.destroy()).resume();
  socket.setTimeout(longestMs, () => socket.destroy());
  const bytes = hostileBytes(random, token);
  const how = random.below(5);
  if (how === 0) socket.once('connect', () => reset(socket, to));
  else if (how === 1) socket.write(bytes, () => reset(socket, to));
  else if (how === 2) socket.end(bytes);
  else if (how === 3) socket.write(bytes, () => setTimeout(() => reset(socket, to), random.below(200)));
  else socket.write(bytes, () => socket.destroy());
  socket.once('end', () => socket.end());
  await over;
}

function reset(socket: Socket, to: object): void {
  if ('port' in to) socket.resetAndDestroy();
  else socket.destroy();
}

/** So many hostile connections, some of them at a time. */
export async function knockOften(
  random: Seeded,
  to: { port: number } | { path: string },
  times: number,
  token?: string,
): Promise<void> {
  let left = times;
  const one = async () => {
    while (left > 0) {
      left -= 1;
      await knock(random, to, token);
    }
  };
  await Promise.all(Array.from({ length: 32 }, one));
}
