import { chmod, mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { relayTraffic } from '../../bounds/sandbox.ts';

/**
 * A socket of this process in a folder that a relay mounts. Where the engine runs on this machine, the relay
 * connects to it for each connection of its sandbox, so that the engine copies no bytes.
 */
export interface SharedSocket extends AsyncDisposable {
  /** Everyone may enter it; only this user may enter the folder that it is in. */
  folder: string;
  server: Server;
}

/** The folder in the relay's container, and the socket in it. */
export const sharedFolder = '/gateway';
export const socketName = 'socket';

const prefix = 'offsite-relay-';
let isSwept = false;

/** Undefined if this machine cannot have one, such as where paths are too long for a socket. */
export async function openSharedSocket(): Promise<SharedSocket | undefined> {
  let own: string | undefined;
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true });
  server.maxConnections = relayTraffic.count.connections;
  const close = async () => {
    server.close();
    if (own !== undefined) await rm(own, { recursive: true, force: true });
  };
  try {
    own = await mkdtemp(join(tmpdir(), prefix));
    const folder = join(own, 'gateway');
    await mkdir(folder);
    await chmod(folder, 0o755);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once('error', reject);
    // The relay's user is nobody, which in a user namespace is a user that this machine does not know.
    const path = join(folder, socketName);
    server.listen({ path, readableAll: true, writableAll: true, backlog: 1024 }, resolve);
    await promise;
    if (!isSwept) removeDead(own).catch(() => undefined);
    isSwept = true;
    return { folder, server, [Symbol.asyncDispose]: close };
  } catch {
    await close();
    return undefined;
  }
}

/** Removes the folders of processes that were killed. */
async function removeDead(own: string): Promise<void> {
  const now = (await stat(own)).mtimeMs;
  const others = (await readdir(tmpdir())).filter((name) => name.startsWith(prefix));
  const remove = async (other: string) => {
    // A process that is about to listen does so in less than a minute.
    const isOld = (await stat(other)).mtimeMs < now - 60_000;
    if (isOld && !(await isHeard(other))) await rm(other, { recursive: true, force: true });
  };
  await Promise.allSettled(others.map((name) => remove(join(tmpdir(), name))));
}

function isHeard(own: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(join(own, 'gateway', socketName), () => resolve(true));
  const none = ['ECONNREFUSED', 'ENOENT'];
  socket.on('error', ({ code = '' }: NodeJS.ErrnoException) => resolve(!none.includes(code)));
  return promise.finally(() => socket.destroy());
}
