import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../free-port.ts';
import { engineSocket } from './engine-socket.ts';

/** A socket before the engine's that can cut what goes through it. */
export interface CuttingProxy extends AsyncDisposable {
  /** `unix://...`, or `tcp://127.0.0.1:PORT` before a port, to connect to instead of the engine. */
  host: string;
  /** Ends all open connections: cleanly, as a proxy that is stopped does, or with a reset. */
  cut(how: 'end' | 'reset'): void;
  /** Ends all connections, and each new one too while it is down. */
  isDown: boolean;
  /** How many new connections it has ended. */
  readonly refused: number;
  /** Passes nothing on, on open connections and on new ones, as an engine whose process is stopped does. */
  isHung: boolean;
}

interface CuttingProxyOptions {
  /**
   * `reset` closes a connection that the engine ends without reading what was sent on it, as the engine
   * itself does if it collects garbage at that moment.
   */
  atEnd?: 'end' | 'reset';
  /** The engine's socket, or its port on the loopback. Default: the socket of the engine that tests use. */
  before?: string | number;
}

export async function cuttingProxy({
  atEnd = 'end',
  before = engineSocket,
}: CuttingProxyOptions = {}): Promise<CuttingProxy> {
  const folder = await mkdtemp(join(tmpdir(), 'offsite-proxy-'));
  const path = join(folder, 'docker.sock');
  const pairs = new Set<[Socket, Socket]>();
  const held = new Set<Socket>();
  let isDown = false;
  let refused = 0;
  let isHung = false;
  const server = createServer({ allowHalfOpen: true }, (near) => {
    if (isDown) {
      refused += 1;
      near.destroy();
      return;
    }
    if (isHung) {
      held.add(near.on('error', () => undefined).on('close', () => held.delete(near)));
      return;
    }
    const to = typeof before === 'string' ? { path: before } : { host: '127.0.0.1', port: before };
    const far = connect({ ...to, allowHalfOpen: true });
    const pair: [Socket, Socket] = [near, far];
    pairs.add(pair);
    near.pipe(far).pipe(near, { end: atEnd === 'end' });
    if (atEnd === 'reset') far.on('end', () => near.write('', () => near.destroy()));
    for (const socket of pair) socket.on('error', () => undefined).on('close', () => pairs.delete(pair));
  });
  const port = typeof before === 'string' ? undefined : await freePort();
  await new Promise<void>((resolve) => {
    if (port === undefined) server.listen(path, resolve);
    else server.listen(port, '127.0.0.1', resolve);
  });
  const cut = (how: 'end' | 'reset') => {
    for (const [near, far] of pairs) {
      far.unpipe(near);
      if (how === 'end') near.end();
      else near.destroy();
      far.destroy();
    }
  };
  return {
    host: port === undefined ? `unix://${path}` : `tcp://127.0.0.1:${port}`,
    cut,
    get isDown() {
      return isDown;
    },
    set isDown(down: boolean) {
      isDown = down;
      if (down) cut('reset');
    },
    get refused() {
      return refused;
    },
    get isHung() {
      return isHung;
    },
    set isHung(hung: boolean) {
      if (isHung && !hung) for (const near of held) near.destroy();
      isHung = hung;
      for (const [near, far] of pairs) {
        for (const [from, to] of [
          [near, far],
          [far, near],
        ] as const) {
          if (hung) from.unpipe(to).pause();
          else from.pipe(to);
        }
      }
    },
    async [Symbol.asyncDispose]() {
      cut('reset');
      for (const near of held) near.destroy();
      server.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
