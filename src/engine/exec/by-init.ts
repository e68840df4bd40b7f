import { randomBytes } from 'node:crypto';
import { listenTo } from '../../base/foreign-traffic.ts';
import { processEnds } from '../../bounds/sandbox.ts';
import type { RunningContainer } from '../container/running-container.ts';
import type { ExecCommand, ExecState, OpenExec } from '../port/containers.ts';
import { execLost } from '../port/failure.ts';
import { MarkReader } from './mark-reader.ts';

/** What init has room for; the same numbers are in `own-files/init.c`. */
const room = { bytes: 262_144, texts: 4096 };

/** A command whose input is sent as a whole, and that prints to its standard output alone. */
export interface InitCommand extends Pick<ExecCommand, 'argv' | 'cwd' | 'onPiece'> {
  env: Readonly<Record<string, string>>;
  user: string | undefined;
  stdin: string;
}

/**
 * Has the container's first process start a command. One round trip, and far less work than a start by the
 * engine, which starts a program of its own that enters the container: see `bench overhead`.
 *
 * Undefined if the engine must start it: init starts the first command of its container, as the user that it
 * runs as. Its folder, home and groups are those of its own start, which an earlier command may have
 * changed. It also leaves to the engine what the kernel cannot start, because the engine says why. The stream
 * ends with the program, not with what the program left running. An engine is not asked how it ended: init
 * reports that, behind a word that no other process of the container can read.
 */
export async function startByInit(
  container: RunningContainer,
  { argv, cwd = '.', env, user, stdin, onPiece }: InitCommand,
): Promise<OpenExec | undefined> {
  const { initUser, execCount } = container;
  if (initUser === undefined || initUser.name !== user || execCount > 1) return undefined;
  const secret = randomBytes(16).toString('hex');
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const texts = [secret, cwd, ...argv, ...variables];
  const request = Buffer.from(texts.map((text) => `${text}\0`).join(''));
  const fits = request.length <= room.bytes && Math.max(argv.length, variables.length) <= room.texts;
  if (!fits || texts.some((text) => text.includes('\0'))) return undefined;
  const numbers = Buffer.from(Uint32Array.of(request.length, argv.length, variables.length).buffer);
  container.initUser = undefined;

  const started = Promise.withResolvers<boolean>();
  const ended = Promise.withResolvers<void>();
  // Each may be rejected before anybody waits for it.
  started.promise.catch(() => undefined);
  ended.promise.catch(() => undefined);
  let state: ExecState = { running: true, exitCode: null, neverStarted: false };
  const stream = await container.port.containers.attach(container.id, {
    onStderr: (bytes) => onPiece({ stream: 'stderr', bytes }),
  });
  const lose = (cause?: unknown) => {
    const lost = execLost('The connection to the engine broke while a command ran.', cause);
    started.reject(lost);
    ended.reject(lost);
  };
  const marks = new MarkReader(secret);
  const take = (chunk: Buffer) => {
    for (const piece of marks.read(chunk)) {
      // What runs can take the mark of its start out of the pipe, but only what runs writes anything else.
      started.resolve(piece.kind === 'output' || piece.fields[0] !== 'N');
      if (piece.kind === 'output') onPiece({ stream: 'stdout', bytes: piece.bytes });
      else if (piece.fields[0] === 'X') {
        state = { ...state, running: false, exitCode: Number(piece.fields[1]) };
        ended.resolve();
      }
    }
  };
  // The container ends with init, and so does the stream.
  listenTo(stream, { data: take, error: lose, close: () => lose() }, lose);
  stream.end(Buffer.concat([numbers, request, Buffer.from(stdin)]));
  using unused = new DisposableStack();
  unused.defer(() => stream.destroy());
  if (!(await isStarted(container, started.promise))) return undefined;
  unused.move();
  return {
    id: undefined,
    streamEnded: ended.promise,
    inspect: async () => state,
    [Symbol.dispose]: () => void stream.destroy(),
  };
}

/**
 * What init answers. False if the container has ended: engines attach to that too, and nothing ever comes.
 * Throws if init does not answer in time: somebody else who was attached may have closed its input.
 */
async function isStarted(
  { port: { clock, containers }, id }: RunningContainer,
  answer: Promise<boolean>,
): Promise<boolean> {
  const answered = new AbortController();
  const watch = async () => {
    for (const end = clock.now() + processEnds.time.firstStart; clock.now() < end; ) {
      await clock.sleep(processEnds.time.lossLook, answered.signal);
      if (!(await containers.state(id, answered.signal)).isRunning) return false;
    }
    throw execLost('The first process of the container did not say whether it started a command.');
  };
  try {
    return await Promise.race([answer, watch()]);
  } finally {
    answered.abort();
  }
}
