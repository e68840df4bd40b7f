import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A socket before the engine's that can cut what goes through it. */
export interface CuttingProxy extends AsyncDisposable {
  /** `unix://...`, to connect to instead of the engine. */
  host: string;
  /** Ends all open connections: cleanly, as a proxy that is stopped does, or with a reset. */
  cut(how: 'end' | 'reset'): void;
  /** Ends all connections, and each new one too while it is down. */
  isDown: boolean;
}

/**
 * `atEnd: 'reset'` closes a connection that the engine ends without reading what was sent on it, as the engine
 * itself does if it collects garbage at that moment.
 */
export async function cuttingProxy({ atEnd = 'end' as 'end' | 'reset' } = {}): Promise<CuttingProxy> {
  const folder = await mkdtemp(join(tmpdir(), 'offsite-proxy-'));
  const path = join(folder, 'docker.sock');
  const pairs = new Set<[Socket, Socket]>();
  let isDown = false;
  const server = createServer({ allowHalfOpen: true }, (near) => {
    if (isDown) {
      near.destroy();
      return;
    }
    const far = connect({ path: '/var/run/docker.sock', allowHalfOpen: true });
    const pair: [Socket, Socket] = [near, far];
    pairs.add(pair);
    near.pipe(far).pipe(near, { end: atEnd === 'end' });
    if (atEnd === 'reset') far.on('end', () => near.write('', () => near.destroy()));
    for (const socket of pair) socket.on('error', () => undefined).on('close', () => pairs.delete(pair));
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const cut = (how: 'end' | 'reset') => {
    for (const [near, far] of pairs) {
      far.unpipe(near);
      if (how === 'end') near.end();
      else near.destroy();
      far.destroy();
    }
  };
  return {
    host: `unix://${path}`,
    cut,
    get isDown() {
      return isDown;
    },
    set isDown(down: boolean) {
      isDown = down;
      if (down) cut('reset');
    },
    async [Symbol.asyncDispose]() {
      cut('reset');
      server.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
