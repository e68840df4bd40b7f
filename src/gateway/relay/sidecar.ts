import { readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import type { ServerHttp2Session } from 'node:http2';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { abortable, startDeadline } from '../../base/deadline.ts';
import { infrastructureError, messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { relayTraffic } from '../../bounds/sandbox.ts';
import type { ContainerSpec } from '../../engine/container/container-spec.ts';
import type { Container } from '../../engine/container.ts';
import type { Engine } from '../../engine/engine.ts';
import { isEngineFailure } from '../../engine/port/failure.ts';
import { type RelayHandler, relayPort } from './relay.ts';

const program = readFileSync(new URL('./sidecar/main.cjs', import.meta.url), 'utf8');

export interface SidecarRequest {
  /**
   * The network in which it listens: its own, which other containers can share, or that of a running
   * container.
   */
  network: ContainerSpec['network'];
  /** Id of an image with Node 24. */
  image: string;
  handler: RelayHandler;
  labels: Readonly<Record<string, string>>;
  clock: Clock;
}

/** A relay's container while it starts and runs. Disposing removes it. */
export interface Sidecar extends AsyncDisposable {
  readonly id: string;
  /**
   * Resolves once containers can be started in its network, with the id to name: it is another one if the
   * engine refused to start the first. Rejects with infrastructure errors, as `listening` does.
   */
  readonly started: Promise<string>;
  readonly listening: Promise<void>;
  /** Resolves, never rejects, with the reason when it has ended, by itself or not. */
  readonly ended: Promise<string>;
}

/** Whether an engine sees this machine's files, once that has shown. */
const seesFiles = new WeakMap<Engine, boolean>();

/**
 * Creates a sidecar and begins its start: three round trips in total, and one to remove it. It mounts a
 * socket of this process. If the engine refuses to create or to start it so, it is made once more without.
 * Throws infrastructure errors.
 */
export async function beginSidecar(
  engine: Engine,
  { network, image, handler, labels, clock }: SidecarRequest,
  signal: AbortSignal,
): Promise<Sidecar> {
  const spec: ContainerSpec = {
    imageId: image,
    labels,
    network,
    security: 'strict',
    user: '65534:65534',
    memoryBytes: relayTraffic.bytes.relayMemory,
    cpus: Math.min(2, engine.capabilities.cpus),
    pids: 32,
    workingDir: '/',
    program: command(),
    // It runs only Offsite's own code, beside a sandbox whose own filter is checked.
    filter: 'if-available',
  };
  let shared = seesFiles.get(engine) === false ? undefined : await openSharedSocket();
  let isRefused = false;
  const containers: Container[] = [];
  const ended = Promise.withResolvers<string>();
  const create = async () => {
    const mounts = shared && [{ folder: shared.folder, path: sharedFolder }];
    const container = await engine.createContainer({ ...spec, mounts }, signal);
    containers.push(container);
    return container;
  };
  const start = async (container: Container) => {
    const served = await startServed(container, { handler, shared, onEnd: ended.resolve }, signal);
    if (shared) seesFiles.set(engine, true);
    // An engine that has seen the files refused for another reason.
    else if (isRefused && !seesFiles.has(engine)) seesFiles.set(engine, false);
    return { id: container.id, ...served };
  };
  const createUnshared = async (error: unknown) => {
    const hadMount = shared !== undefined;
    await shared?.[Symbol.asyncDispose]();
    shared = undefined;
    if (!hadMount || !(error instanceof OffsiteError) || isEngineFailure(error, 'connection')) throw error;
    isRefused = true;
    return create();
  };
  // A refused container stays until the end: a sandbox is being made in its network.
  const first = await create().catch(createUnshared);
  const serving = start(first).catch(async (error: unknown) => start(await createUnshared(error)));
  const started = serving.then(({ id }) => id);
  const listening = serving.then(({ listens }) => inTime(listens, ended.promise, clock, signal));
  // A caller may await only one of them.
  for (const promise of [started, listening]) promise.catch(() => undefined);
  return {
    id: first.id,
    started,
    listening,
    ended: ended.promise,
    async [Symbol.asyncDispose]() {
      // Ends requests in flight without waiting for the removal.
      await serving.then(
        ({ session }) => session.destroy(),
        () => undefined,
      );
      await Promise.all([...containers, shared].map((made) => made?.[Symbol.asyncDispose]()));
    },
  };
}

/**
 * The command itself contains the program: that saves the round trip for a file, and the container's files
 * can stay read-only.
 */
function command(): string[] {
  const given = [relayPort, relayTraffic.count.relayConnections, relayTraffic.bytes.unreadAnswer].map(String);
  const socket = `${sharedFolder}/${socketName}`;
  return ['node', '--max-old-space-size=96', '--input-type=commonjs', '--eval', program, ...given, socket];
}

interface Served {
  handler: RelayHandler;
  shared: SharedSocket | undefined;
  onEnd(words: string): void;
}

/** What a sidecar prints to stderr once its port is open. */
const listeningWord = 'listening\n';

/**
 * Attaches to a sidecar and starts it; `listens` resolves when its port is open. Calls `onEnd` when its
 * session is over, with its last output.
 */
async function startServed(
  container: Container,
  { handler, shared, onEnd }: Served,
  signal: AbortSignal,
): Promise<{ session: ServerHttp2Session; listens: Promise<void> }> {
  let said = '';
  const listens = Promise.withResolvers<void>();
  const onStderr = (bytes: Buffer) => {
    const all = `${said}${bytes}`;
    said = all.replace(listeningWord, '').slice(-relayTraffic.bytes.relayWords);
    if (all.includes(listeningWord)) listens.resolve();
  };
  const stdio = await container.attach({ onStderr, signal });
  using early = shared && keepWaiting(shared.server);
  // It loads Node's HTTP/2, which a run without a model never needs.
  const [{ serveRelay }] = await Promise.all([import('./serve.ts'), container.start(signal)]);
  const session = serveRelay(stdio, handler, shared?.server);
  early?.pass();
  session.once('error', (error) => {
    said ||= messageOf(error);
  });
  session.once('close', () => onEnd(said.trim() || 'its process ended without output'));
  return { session, listens: listens.promise };
}

/**
 * Keeps the connections that arrive before anyone serves them: a relay that replaces another may carry some
 * before the engine answers that it has started.
 */
function keepWaiting(server: Server): Disposable & { pass(): void } {
  const waiting = new Set<Socket>();
  const keep = (socket: Socket) => waiting.add(socket);
  server.on('connection', keep);
  return {
    pass() {
      server.off('connection', keep);
      for (const socket of waiting) server.emit('connection', socket);
      waiting.clear();
    },
    [Symbol.dispose]() {
      server.off('connection', keep);
      for (const socket of waiting) socket.destroy();
    },
  };
}

async function inTime(
  listens: Promise<void>,
  ended: Promise<string>,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const ms = relayTraffic.time.relayStart;
  using deadline = startDeadline(clock, ms, [signal], () =>
    notListening(`it did not listen within ${ms / 1000} s`),
  );
  const failed = ended.then((words): never => {
    throw notListening(words);
  });
  await abortable(Promise.race([listens, failed]), deadline.signal);
}

function notListening(why: string): OffsiteError {
  return infrastructureError('RELAY_NOT_STARTED', `A sandbox's relay did not start: ${why}`, {
    hint: 'Its image must contain Node 24 as `node`.',
  });
}

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

const folderPrefix = 'offsite-relay-';
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
    own = await mkdtemp(join(tmpdir(), folderPrefix));
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
  const others = (await readdir(tmpdir())).filter((name) => name.startsWith(folderPrefix));
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
