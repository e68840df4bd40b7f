import { chmodSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';
import { listenTo } from '../../base/foreign-traffic.ts';
import { inputError, messageOf, type OffsiteError } from '../../base/offsite-error.ts';
import { controlRequests } from '../../bounds/callers.ts';
import { plural } from '../../text/quantities.ts';
import { controlSocketOf, type SocketOwner } from './control-socket-path.ts';
import type { Daemon } from './daemon.ts';
import { isReady } from './status.ts';

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
  return inputError('SOCKET_UNUSABLE', `cannot listen on ${path}: ${why}`, {
    hint: 'Name another data folder: --data-folder, OFFSITE_HOME, or dataFolder in offsite.yaml.',
    cause,
  });
}

/** The routes that anybody on this machine may call: health, readiness, status and metrics. */
export function statusRoutes(daemon: Daemon): Hono {
  const routes = new Hono();
  routes.get('/healthz', (context) => {
    const { health } = daemon.status();
    return context.json(health, health.ok ? 200 : 503);
  });
  routes.get('/readyz', (context) => {
    const status = daemon.status();
    const { mode, blocked } = status;
    const ready = isReady(status);
    return context.json({ ready, mode, blocked }, ready ? 200 : 503);
  });
  routes.get('/status', (context) => context.json(daemon.status()));
  routes.get('/metrics', async (context) => {
    const { metrics } = daemon;
    return context.body(await metrics.text(daemon.status()), 200, { 'content-type': metrics.contentType });
  });
  return routes;
}

/** The routes for the daemon's owner: the status, and commands. A command answers with a line for people. */
export function controlRoutes(daemon: Daemon): Hono {
  const routes = statusRoutes(daemon);
  routes.post('/pause', (context) => context.json({ message: daemon.pause() }));
  routes.post('/unpause', (context) => context.json({ message: daemon.unpause() }));
  routes.post('/drain', (context) => context.json({ message: daemon.drain() }));
  routes.post('/cancel/:name', async (context) => {
    const named = await daemon.cancelNamed(context.req.param('name'));
    if (typeof named === 'string') return context.json({ message: named }, 404);
    const { kind, id, runs, canceled, ended } = named;
    const over = `${plural(ended, 'trial')} had ended elsewhere`;
    if (canceled === 0) {
      const batch = runs[0]?.batchId ?? id;
      const message = `nothing to cancel of ${kind} ${id}: ${over}; \`offsite service runs ${batch}\` shows them`;
      return context.json({ message });
    }
    const isFound = runs.some(({ origin }) => origin === 'found');
    const meanwhile = isFound ? '; until then, other daemons may run what is open at the service' : '';
    const after =
      `what ends before it is stopped, and what is finished, stays reported. ` +
      `\`offsite resume ${id}\` runs the canceled ones after all, and \`offsite data abandon ${id}\` reports them as void${meanwhile}`;
    const others = ended > 0 ? `, ${over}` : '';
    const trials = plural(canceled, 'trial');
    return context.json({ message: `canceled ${trials} of ${kind} ${id} here${others}; ${after}` });
  });
  routes.post('/let-go/:id', async (context) => {
    return context.json({ isFree: await daemon.letGo(context.req.param('id')) });
  });
  routes.post('/concurrency/:trials', (context) => {
    const trials = Number(context.req.param('trials'));
    if (!Number.isInteger(trials) || trials < 1) {
      return context.json({ message: 'expected a whole number from 1' }, 400);
    }
    return context.json({ message: daemon.changeConcurrency(trials) });
  });
  return routes;
}
