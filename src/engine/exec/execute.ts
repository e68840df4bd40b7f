import { steadyClock } from '../../base/clock.ts';
import { startDeadline } from '../../base/deadline.ts';
import { commandOutput } from '../../bounds/sandbox.ts';
import { watchDisk } from '../container/disk-watch.ts';
import { type CommandLife, type RunningContainer, withContainer } from '../container/running-container.ts';
import type { ExecState, OpenExec, OutputStream } from '../port/containers.ts';
import { endExec, execTag, type TaggedExec, tagExec } from './end-exec.ts';
import type { ExecFacts, ExecRequest, ExecResult } from './exec-request.ts';
import { finalState, killedExitCode, knownExitCode, oomKilledSinceLastAsked } from './exit-code.ts';
import { OutputCapture } from './output-capture.ts';
import { assertContainerOutlived, assertContainerRuns, watchLoss } from './stopped-container.ts';

interface Course {
  output: Record<OutputStream, OutputCapture>;
  /** The facts so far. */
  facts(oomKilled: boolean): ExecFacts;
  life: CommandLife;
}

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
  return await withContainer(
    container,
    {
      mayEndContainer: request.mayEndContainer,
      killed: ({ oomKilled }) => ({ ended: 'exited', exitCode: killedExitCode, ...facts(oomKilled) }),
    },
    (life) => runCommand(container, request, { output, facts, life }),
  );
}

async function runCommand(
  container: RunningContainer,
  request: ExecRequest,
  { output, facts, life }: Course,
): Promise<ExecResult> {
  const { clock } = container.port;
  using tagged = tagExec(container, request.user);
  using deadline = startDeadline(clock, request.timeoutMs, request.signal);
  using watch = watchLoss(container);
  const opening = container.port.containers.exec(container.id, {
    ...request,
    env: { ...container.env, ...request.env, [execTag]: tagged.tag },
    user: tagged.user,
    // No signal: once the start is sent, wait for it, so that the command can be ended.
    signal: undefined,
    onPiece: ({ stream, bytes }) => {
      output[stream].push(bytes);
      request.onOutput?.(stream, bytes);
    },
  });
  const opened = await watch.opened(opening);
  if (!opened.started) {
    await assertContainerRuns(container, opened.message);
    return { ended: 'not-started', message: opened.message, ...facts(false) };
  }
  life.begun = true;
  using attached = opened.exec;
  const exec = { ...attached, ...tagged };
  using disk = watchDisk(container, request.diskBytes ?? container.diskBytes);
  const end = await Promise.race([
    exitOf(container, exec, deadline.signal),
    deadline.reached,
    disk.exceeded,
    watch.lost,
  ]);
  if (typeof end === 'string') {
    life.over = true;
    await endExec(container, exec);
    return { ended: end, ...facts(await oomKilledSinceLastAsked(container, exec.id)) };
  }
  if (end.neverStarted) {
    const nothing = new OutputCapture(0).result();
    // Engines differ in the stream in which they report the reason.
    const message = (output.stdout.result().text || output.stderr.result().text).trim();
    await assertContainerRuns(container, message);
    return { ended: 'not-started', message, ...facts(false), stdout: nothing, stderr: nothing };
  }
  const exitCode = knownExitCode(end);
  await assertContainerOutlived(container, exitCode);
  if (exitCode !== 0 && !(await fitsKernel(container, request))) {
    const nothing = new OutputCapture(0).result();
    const message = (output.stderr.result().text || output.stdout.result().text).trim();
    return { ended: 'not-started', message, ...facts(false), stdout: nothing, stderr: nothing };
  }
  const oomKilled = exitCode !== 0 && (await oomKilledSinceLastAsked(container, exec.id));
  return { ended: 'exited', exitCode, ...facts(oomKilled) };
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
export async function exitOf(
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
