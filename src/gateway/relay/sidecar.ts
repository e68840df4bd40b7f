import { readFileSync } from 'node:fs';
import type { ServerHttp2Session } from 'node:http2';
import type { Clock } from '../../base/clock.ts';
import { abortable, startDeadline } from '../../base/deadline.ts';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { relayTraffic } from '../../bounds/sandbox.ts';
import type { ContainerSpec } from '../../engine/container/container-spec.ts';
import type { Container } from '../../engine/container.ts';
import type { Engine } from '../../engine/engine.ts';
import { isEngineFailure } from '../../engine/port/failure.ts';
import { type RelayHandler, relayPort } from './relay.ts';
import { serveRelay } from './serve.ts';
import { openSharedSocket, type SharedSocket, sharedFolder, socketName } from './shared-socket.ts';

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
   * Resolves once containers can be started in its network. Rejects with infrastructure errors, as
   * `listening` does.
   */
  readonly started: Promise<void>;
  readonly listening: Promise<void>;
  /** Resolves, never rejects, with the reason when it has ended, by itself or not. */
  readonly ended: Promise<string>;
}

/**
 * Creates a sidecar and begins its start: three round trips in total, and one to remove it. Throws
 * infrastructure errors.
 */
export async function beginSidecar(
  engine: Engine,
  { network, image, handler, labels, clock }: SidecarRequest,
  signal: AbortSignal,
): Promise<Sidecar> {
  const { container, shared } = await createSharing(
    engine,
    {
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
    },
    signal,
  );
  const ended = Promise.withResolvers<string>();
  const serving = startServed(container, { handler, shared, onEnd: ended.resolve }, signal);
  const started = serving.then(() => undefined);
  const listening = serving.then((session) => firstSaid(session, ended.promise, clock, signal));
  // A caller may await only one of them.
  for (const promise of [started, listening]) promise.catch(() => undefined);
  return {
    id: container.id,
    started,
    listening,
    ended: ended.promise,
    async [Symbol.asyncDispose]() {
      // Ends requests in flight without waiting for the removal.
      serving.then(
        (session) => session.destroy(),
        () => undefined,
      );
      await Promise.all([container[Symbol.asyncDispose](), shared?.[Symbol.asyncDispose]()]);
    },
  };
}

/** Engines that do not see this machine's files. */
const farEngines = new WeakSet<Engine>();

/** Creates the container with a socket of this process, if the engine sees this machine's files. */
async function createSharing(
  engine: Engine,
  spec: ContainerSpec,
  signal: AbortSignal,
): Promise<{ container: Container; shared?: SharedSocket | undefined }> {
  const shared = farEngines.has(engine) ? undefined : await openSharedSocket();
  if (shared === undefined) return { container: await engine.createContainer(spec, signal) };
  try {
    const mounts = [{ folder: shared.folder, path: sharedFolder }];
    return { container: await engine.createContainer({ ...spec, mounts }, signal), shared };
  } catch (error) {
    await shared[Symbol.asyncDispose]();
    if (!isEngineFailure(error, 'refused')) throw error;
    const container = await engine.createContainer(spec, signal);
    farEngines.add(engine);
    return { container };
  }
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

/** Attaches to a sidecar and starts it. Calls `onEnd` when its session is over, with its last output. */
async function startServed(
  container: Container,
  { handler, shared, onEnd }: Served,
  signal: AbortSignal,
): Promise<ServerHttp2Session> {
  let said = '';
  const onStderr = (bytes: Buffer) => {
    said = `${said}${bytes}`.slice(-relayTraffic.bytes.relayWords);
  };
  const stdio = await container.attach({ onStderr, signal });
  await container.start(signal);
  const session = serveRelay(stdio, handler, shared?.server);
  session.once('error', (error) => {
    said ||= messageOf(error);
  });
  session.once('close', () => onEnd(said.trim() || 'its process ended without output'));
  return session;
}

/** A sidecar sends its settings first, once its port is open. */
async function firstSaid(
  session: ServerHttp2Session,
  ended: Promise<string>,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const ms = relayTraffic.time.relayStart;
  using deadline = startDeadline(clock, ms, [signal], () =>
    notListening(`it did not listen within ${ms / 1000} s`),
  );
  const settings = Promise.withResolvers<void>();
  session.once('remoteSettings', () => settings.resolve());
  const failed = ended.then((words): never => {
    throw notListening(words);
  });
  await abortable(Promise.race([settings.promise, failed]), deadline.signal);
}

function notListening(why: string): OffsiteError {
  return new OffsiteError(`A sandbox's relay did not start: ${why}`, {
    code: 'RELAY_NOT_STARTED',
    kind: 'infrastructure',
    hint: 'Its image must contain Node 24 as `node`.',
  });
}
