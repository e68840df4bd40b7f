import { chmodSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import type { Hono } from 'hono';
import { listenTo } from '../../base/foreign-traffic.ts';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { controlRequests } from '../../bounds/callers.ts';
import { controlSocketOf, type SocketOwner } from './control-socket-path.ts';

/**
 * The longest path of a Unix socket in bytes, without its final zero. The limit is 108 on Linux, 104 on
 * macOS.
 */
const longestPath = 103;

/**
 * Serves the routes on the data folder's socket, which only its owner can open. The caller holds its
 * owner's lock, so a socket that already exists was left by an owner that died. Throws `SOCKET_UNUSABLE`.
 */
export async function openControlSocket(
  dataFolder: string,
  routes: Hono,
  owner: SocketOwner = 'daemon',
): Promise<AsyncDisposable> {
  const path = controlSocketOf(dataFolder, owner);
  if (Buffer.byteLength(path) > longestPath) {
    throw unusable(path, `its path is longer than the ${longestPath} bytes that a socket allows`);
  }
  rmSync(path, { force: true });
  const limits = {
    headersTimeout: controlRequests.time.request,
    requestTimeout: controlRequests.time.request,
    maxHeaderSize: controlRequests.bytes.head,
  };
  const server = createServer(limits, getRequestListener(routes.fetch));
  server.maxConnections = controlRequests.count.connections;
  // If a connection cannot be accepted, for example because all file descriptors are in use, its client finds
  // out.
  listenTo(server, {}, () => undefined);
  // `listen` creates the socket. No other user may have access to it, not even for a moment.
  const before = process.umask(0o177);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error) => reject(unusable(path, messageOf(error), error)));
      server.listen(path, resolve);
      process.umask(before);
    });
  } finally {
    process.umask(before);
  }
  chmodSync(path, 0o600);
  return {
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      rmSync(path, { force: true });
    },
  };
}

function unusable(path: string, why: string, cause?: unknown): OffsiteError {
  return new OffsiteError(`cannot listen on ${path}: ${why}`, {
    code: 'SOCKET_UNUSABLE',
    kind: 'input',
    hint: 'Name another data folder: --data-folder, OFFSITE_HOME, or dataFolder in offsite.yaml.',
    cause,
  });
}
