import { connect, createServer, type Socket } from 'node:net';

/** A proxy between a worker and the server, which can cut their connections as a lost network does. */
export interface CutProxy extends AsyncDisposable {
  address: string;
  /** From now on nothing passes: no bytes, no end of a connection, no refusal. */
  cut(): void;
  /** Lets new connections pass, and breaks those that were cut. */
  restore(): void;
}

export async function openCutProxy(port: number): Promise<CutProxy> {
  let isCut = false;
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    sockets.add(near);
    near.on('error', () => undefined).on('close', () => sockets.delete(near));
    if (isCut) return;
    const far = connect(port, '127.0.0.1');
    sockets.add(far);
    const pass = (from: Socket, to: Socket) => {
      from.on('data', (chunk) => isCut || to.write(chunk));
      from.on('close', () => isCut || to.destroy());
    };
    pass(near, far);
    pass(far, near);
    far.on('error', () => undefined).on('close', () => sockets.delete(far));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const breakAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  const address = server.address();
  const own = address !== null && typeof address === 'object' ? address.port : 0;
  return {
    address: `127.0.0.1:${own}`,
    cut() {
      isCut = true;
    },
    restore() {
      breakAll();
      isCut = false;
    },
    async [Symbol.asyncDispose]() {
      breakAll();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
