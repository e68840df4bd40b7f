import { readFileSync } from 'node:fs';
import type { ServerHttp2Session } from 'node:http2';
import { extname } from 'node:path';
import type { Clock } from '../../clock.ts';
import type { Container } from '../../engine/container.ts';
import { startDeadline } from '../../engine/deadline.ts';
import type { Engine } from '../../engine/engine.ts';
import { OffsiteError } from '../../offsite-error.ts';
import type { RelayHandler } from './relay.ts';
import { serveRelay } from './serve.ts';

/** Below the ports that clients are given, so that no connection of the sandbox's can have taken it. */
export const relayPort = 19734;

/** TypeScript in a checkout, JavaScript once built, as this file is. */
const extension = extname(import.meta.filename);
const program = readFileSync(new URL(`./sidecar/main${extension}`, import.meta.url), 'utf8');

/** From the start of its container until it listens: Node's own start, which a busy machine may make long. */
const listenTimeoutMs = 60_000;
const keptStderr = 4096;
/** It takes about 35 MiB; hostile clients can make it ten times as much, and are not to kill it. */
const memoryBytes = 512 * 2 ** 20;

export interface SidecarRequest {
  sandbox: Container;
  /** The sandbox's start, where it is still under way: the sidecar is made meanwhile. */
  sandboxStarted?: Promise<unknown> | undefined;
  /** Id of an image with Node 24. */
  image: string;
  handler: RelayHandler;
  labels: Readonly<Record<string, string>>;
  clock: Clock;
}

/** A relay's container, listening. Disposing removes it. */
export interface Sidecar extends AsyncDisposable {
  /** Resolves, never rejects, with what there is to say when it has ended, by itself or not. */
  readonly ended: Promise<string>;
}

/** Makes, attaches and starts a sidecar: three round trips, and one to remove it. Throws infrastructure errors. */
export async function startSidecar(
  engine: Engine,
  { sandbox, sandboxStarted, image, handler, labels, clock }: SidecarRequest,
  signal: AbortSignal,
): Promise<Sidecar> {
  const container = await engine.createContainer(
    {
      imageId: image,
      labels,
      network: { sharedWith: sandbox.id },
      security: 'strict',
      user: '65534:65534',
      memoryBytes,
      cpus: Math.min(2, engine.capabilities.cpus),
      pids: 32,
      workingDir: '/',
      program: command(),
    },
    signal,
  );
  let said = '';
  const onStderr = (bytes: Buffer) => {
    said = `${said}${bytes}`.slice(-keptStderr);
  };
  try {
    const stdio = await container.attach({ onStderr, signal });
    await sandboxStarted;
    await container.start(signal);
    const session = serveRelay(stdio, handler);
    const ended = new Promise<string>((resolve) => {
      session.once('close', () => resolve(said.trim() || 'its process ended without a word'));
    });
    await listening(session, ended, clock, signal);
    const remove = async () => {
      session.destroy();
      await container.remove();
    };
    return { ended, [Symbol.asyncDispose]: remove };
  } catch (error) {
    await container.remove();
    throw error;
  }
}

/** The program goes in the command itself: one round trip less than a file, and the container's files can stay read-only. */
function command(): string[] {
  const kind = extension === '.ts' ? 'module-typescript' : 'module';
  const flags = ['--disable-warning=ExperimentalWarning', '--max-old-space-size=96'];
  return ['node', ...flags, `--input-type=${kind}`, '--eval', program, String(relayPort)];
}

/** Its settings are the first that a sidecar says, once its port is open. */
async function listening(
  session: ServerHttp2Session,
  ended: Promise<string>,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  using deadline = startDeadline(clock, listenTimeoutMs, signal);
  const settings = Promise.withResolvers<'listening'>();
  session.once('remoteSettings', () => settings.resolve('listening'));
  const failed = ended.then((words) => ({ words }));
  const first = await Promise.race([settings.promise, deadline.reached, failed]);
  if (first === 'listening') return;
  signal.throwIfAborted();
  const why =
    first === 'timed-out'
      ? `it did not listen within ${listenTimeoutMs / 1000} s`
      : (first as { words: string }).words;
  throw new OffsiteError(`A sandbox's relay did not come up: ${why}`, {
    code: 'RELAY_NOT_STARTED',
    kind: 'infrastructure',
    hint: 'Its image must have Node 24 as node.',
  });
}
