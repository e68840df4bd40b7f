import { chmodSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { getRequestListener } from '@hono/node-server';
import type { Hono } from 'hono';
import { controlRequests } from '../../bounds/callers.ts';
import { listenTo } from '../../foreign-traffic.ts';
import { messageOf, OffsiteError } from '../../offsite-error.ts';

/** Bytes of a path that a Unix socket can have, its final zero left out: 108 on Linux, 104 on macOS. */
const longestPath = 103;

export function controlSocketOf(dataFolder: string): string {
  return join(dataFolder, 'control.sock');
}

/**
 * Serves the routes on the data folder's socket, for its owner alone. Whoever calls holds the daemon's lock:
 * a socket that is there already was left by a daemon that died. Throws `SOCKET_UNUSABLE`.
 */
export async function openControlSocket(dataFolder: string, routes: Hono): Promise<AsyncDisposable> {
  const path = controlSocketOf(dataFolder);
  if (Buffer.byteLength(path) > longestPath) {
    throw unusable(path, `its path is longer than the ${longestPath} bytes that a socket's can be`);
  }
  rmSync(path, { force: true });
  const limits = {
    headersTimeout: controlRequests.time.request,
    requestTimeout: controlRequests.time.request,
    maxHeaderSize: controlRequests.bytes.head,
  };
  const server = createServer(limits, getRequestListener(routes.fetch));
  server.maxConnections = controlRequests.count.connections;
  // A connection that cannot be accepted, as when all files are in use, is its client's trouble.
  listenTo(server, {}, () => undefined);
  // The socket is made within `listen`, and must not be anybody else's for a moment.
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
