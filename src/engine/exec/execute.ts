import { steadyClock } from '../../base/clock.ts';
import { startDeadline } from '../../base/deadline.ts';
import { OutputCapture } from '../../base/output-capture.ts';
import { commandOutput } from '../../bounds/sandbox.ts';
import { watchDisk } from '../container/disk-watch.ts';
import { type RunningContainer, withContainer } from '../container/running-container.ts';
import type { ExecCommand, ExecState, OpenExec, OpenedExec } from '../port/containers.ts';
import { type InitCommand, startByInit } from './by-init.ts';
import { endExec, execTag, type TaggedExec, tagExec } from './end-exec.ts';
import type { ExecRequest, ExecResult } from './exec-request.ts';
import { finalState, killedExitCode, knownExitCode, oomKilledSinceLastAsked } from './exit-code.ts';
import { assertContainerOutlived, assertContainerRuns, watchLoss } from './stopped-container.ts';

/**
 * Runs one command to its end: three round trips. Throws an infrastructure error if the engine or the
 * connection failed, because the outcome is then unknown. Every other outcome is a result.
 */
export async function execute(container: RunningContainer, request: ExecRequest): Promise<ExecResult> {
  const clock = steadyClock(container.port.clock);
  const cap = request.capBytes ?? commandOutput.bytes.kept;
  const output = { stdout: new OutputCapture(cap), stderr: new OutputCapture(cap) };
  const startedAt = clock.now();
  const facts = (oomKilled: boolean) => ({
    stdout: output.stdout.result(),
    stderr: output.stderr.result(),
    startedAt,
    finishedAt: clock.now(),
    oomKilled,
  });
  if (request.signal?.aborted) return { ended: 'canceled', ...facts(false) };
  const nothing = new OutputCapture(0).result();
  const notStarted = (message: string): ExecResult => {
    return { ended: 'not-started', message, ...facts(false), stdout: nothing, stderr: nothing };
  };
  return await watchedCommand<ExecResult>(container, {
    ...request,
    command: {
      ...request,
      onPiece: ({ stream, bytes }) => {
        output[stream].push(bytes);
        request.onOutput?.(stream, bytes);
      },
    },
    // Engines differ in the stream in which they report the reason.
    printed: () => (output.stdout.result().text || output.stderr.result().text).trim(),
    notStarted,
    killed: (oomKilled) => ({ ended: 'exited', exitCode: killedExitCode, ...facts(oomKilled) }),
    stopped: async (ended, oomKilled) => ({ ended, ...facts(await oomKilled) }),
    async ended(end, exec) {
      const exitCode = knownExitCode(end);
      await assertContainerOutlived(container, exitCode);
      if (exitCode !== 0 && !(await fitsKernel(container, request)))
        return notStarted((output.stderr.result().text || output.stdout.result().text).trim());
      const oomKilled = exitCode !== 0 && (await oomKilledSinceLastAsked(container, exec.id));
      return { ended: 'exited', exitCode, ...facts(oomKilled) };
    },
  });
}

type CommandLimits = Pick<ExecRequest, 'timeoutMs' | 'signal' | 'diskBytes' | 'mayEndContainer'>;

/** A command that Offsite ends when its time is over, or when it takes too much of the disk. */
interface WatchedCommand<Result, Over extends object> extends CommandLimits {
  /** `mayBeByInit`: its end is not that of its stream, so init may start it; see by-init.ts. */
  command: ExecCommand & ({ mayBeByInit?: undefined } | (Pick<InitCommand, 'stdin'> & { mayBeByInit: true }));
  /** Tells that it is over before the engine does. */
  over?: Promise<Over>;
  /** What it printed first: the reason, if the engine could not start it. */
  printed(): string;
  notStarted(message: string): Result;
  /** The container has ended meanwhile, and the command with it. */
  killed(oomKilled: boolean): Result;
  /** Offsite has ended it. */
  stopped(why: 'timed-out' | 'canceled' | 'out-of-disk', oomKilled: Promise<boolean>): Promise<Result>;
  /** It ended by itself. */
  ended(end: ExecState | Over, exec: WatchedExec): Promise<Result>;
}

interface WatchedExec extends Pick<OpenExec, 'id'> {
  /** Ends what it left running. */
  endRest(): Promise<void>;
}

/** Runs a command in a container that may end meanwhile, and resolves with what becomes of its end. */
export async function watchedCommand<Result, Over extends object = never>(
  container: RunningContainer,
  watched: WatchedCommand<Result, Over>,
): Promise<Result> {
  const { clock, containers } = container.port;
  const { command, timeoutMs, signal } = watched;
  return await withContainer(container, watched, async (life) => {
    using tagged = tagExec(container, command.user);
    using deadline = startDeadline(clock, timeoutMs, signal);
    using watch = watchLoss(container);
    const started = {
      ...command,
      env: { ...container.env, ...command.env, [execTag]: tagged.tag },
      user: tagged.user,
      // No signal: once the start is sent, wait for it, so that the command can be ended.
      signal: undefined,
    };
    const open = async (): Promise<OpenedExec> => {
      const exec = started.mayBeByInit && (await startByInit(container, started));
      return exec ? { started: true, exec } : containers.exec(container.id, started);
    };
    const opened = await watch.opened(open());
    if (!opened.started) {
      await assertContainerRuns(container, opened.message);
      return watched.notStarted(opened.message);
    }
    life.begun = true;
    using attached = opened.exec;
    const exec = { ...attached, ...tagged };
    const endRest = async () => {
      life.over = true;
      await endExec(container, exec);
    };
    using disk = watchDisk(container, watched.diskBytes ?? container.diskBytes);
    const end = await Promise.race([
      // If this comes with the last bytes, it wins, because the engine is asked only later.
      ...(watched.over ? [watched.over] : []),
      exitOf(container, exec, deadline.signal),
      deadline.reached,
      disk.exceeded,
      watch.lost,
    ]);
    if (typeof end === 'string') {
      await endRest();
      return await watched.stopped(end, oomKilledSinceLastAsked(container, exec.id));
    }
    if (isState(end) && end.neverStarted) {
      const message = watched.printed();
      await assertContainerRuns(container, message);
      return watched.notStarted(message);
    }
    return await watched.ended(end, { id: exec.id, endRest });
  });
}

function isState(end: object): end is ExecState {
  return 'neverStarted' in end;
}

/**
 * Whether the kernel starts a program with the arguments and the environment of this request. If it does not,
 * engines report that as output and exit code of a command that ran. So Offsite's own program, which no
 * process of a sandbox can replace, is started with the same ones.
 */
async function fitsKernel(container: RunningContainer, request: ExecRequest): Promise<boolean> {
  const { argv, cwd, user = container.user } = request;
  const env = { ...container.env, ...request.env };
  const texts = [...argv, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)];
  const size = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (size < commandOutput.bytes.alwaysFits || container.own === undefined) return true;
  const opened = await container.port.containers.exec(container.id, {
    argv: [container.own.init, ...argv.slice(1)],
    env,
    cwd,
    user,
    onPiece: () => undefined,
  });
  if (!opened.started) return true;
  using exec = opened.exec;
  using deadline = startDeadline(container.port.clock, commandOutput.time.ownCommand, request.signal);
  if ((await Promise.race([exec.streamEnded, deadline.reached])) !== undefined) return true;
  const { running, exitCode } = await exec.inspect();
  return running || exitCode === 0;
}

/** The state of a command that has ended by itself; never settles once the deadline is reached. */
async function exitOf(
  container: RunningContainer,
  exec: OpenExec & TaggedExec,
  deadline: AbortSignal,
): Promise<ExecState> {
  try {
    await exec.streamEnded;
    return await finalState(container, exec, deadline);
  } catch (thrown) {
    if (deadline.aborted) return new Promise<never>(() => undefined);
    throw thrown;
  }
}
