import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { getHeapStatistics } from 'node:v8';
import { startDeadline } from '../../base/deadline.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { commandOutput } from '../../bounds/sandbox.ts';
import { watchDisk } from '../container/disk-watch.ts';
import { type CommandLife, type RunningContainer, withContainer } from '../container/running-container.ts';
import { endExec, execTag, tagExec } from '../exec/end-exec.ts';
import { exitOf } from '../exec/execute.ts';
import { killedExitCode, knownExitCode, noteOomKills, oomKilledSinceLastAsked } from '../exec/exit-code.ts';
import { assertContainerOutlived, assertContainerRuns, watchLoss } from '../exec/stopped-container.ts';
import { execLost } from '../port/failure.ts';
import {
  MarkReader,
  type ScriptOver,
  type ScriptRequest,
  type ScriptResult,
  StepRecorder,
} from './step-recorder.ts';

/** On a small heap, the outputs of a script's steps may take this fraction of it. */
const heapPartOfOutput = 1 / 32;

const guardianScript = readFileSync(new URL('./guardian.sh', import.meta.url), 'utf8');
const driverScript = readFileSync(new URL('./driver.sh', import.meta.url), 'utf8');
const loopScript = readFileSync(new URL('./loop.sh', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => !line.startsWith('#'))
  .join(' ');

/**
 * Runs a bash script step by step in one process: two round trips, since marks in the output carry the exit
 * codes. All steps run, whatever their exit codes, unless the script itself leaves (`exit`, `exec`, `set
 * -e`). Throws an infrastructure error if the engine fails, and an input error for a script that contains a
 * NUL character.
 */
export async function runScript(container: RunningContainer, request: ScriptRequest): Promise<ScriptResult> {
  const lines = scriptLines(request.script);
  if (request.signal?.aborted) return { ended: 'canceled', steps: [], oomKilled: false };
  return await runLines(container, request, lines);
}

/** What is known of a script that runs. */
interface Running {
  /** Begins each mark. The script must not see it, so it is sent by stdin, not by argv or environment. */
  secret: string;
  marks: MarkReader;
  recorder: StepRecorder;
}

async function runLines(
  container: RunningContainer,
  request: ScriptRequest,
  lines: string[],
): Promise<ScriptResult> {
  const secret = randomBytes(16).toString('hex');
  const cap = Math.min(request.capBytes ?? commandOutput.bytes.kept, shareOf(lines.length));
  const recorder = new StepRecorder(lines, cap, request.clock ?? container.port.clock);
  const running: Running = { secret, marks: new MarkReader(secret), recorder };
  const { mayEndContainer } = request;
  return await withContainer(
    container,
    { mayEndContainer, killed: ({ oomKilled }) => killed(running, oomKilled) },
    (life) => runMarked(container, request, lines, { ...running, life }),
  );
}

/** The outcome of a script whose shells were killed. It has a step that failed. */
function killed({ marks, recorder }: Running, oomKilled: boolean): ScriptResult {
  for (const piece of marks.end()) recorder.take(piece);
  recorder.breakOff(killedExitCode);
  const { steps, shielded } = recorder;
  return { ended: 'finished', steps, oomKilled, devicesIntact: false, shielded };
}

async function runMarked(
  container: RunningContainer,
  request: ScriptRequest,
  lines: string[],
  running: Running & { life: CommandLife },
): Promise<ScriptResult> {
  const { clock } = container.port;
  const { secret, marks, recorder } = running;
  const over = Promise.withResolvers<ScriptOver>();
  // Holds the message of the engine or shell if nothing could be started.
  let firstOutput = '';

  using tagged = tagExec(container, request.user);
  using deadline = startDeadline(clock, request.timeoutMs, request.signal);
  using watch = watchLoss(container);
  const opening = container.port.containers.exec(container.id, {
    argv: ['/bin/sh', '-c', guardianScript, 'guardian', loopScript, driverScript],
    env: {
      ...container.env,
      ...request.env,
      ...shieldOf(container, request),
      // The shells that report the steps must not run a file that an image names.
      BASH_ENV: '',
      [execTag]: tagged.tag,
    },
    cwd: request.cwd,
    user: tagged.user,
    stdin: `${[secret, lines.length, ...lines].join('\n')}\n`,
    // So no other program gets the secret.
    readsInput: true,
    onPiece: ({ bytes }) => {
      if (firstOutput.length < 4096) firstOutput += bytes.toString('utf8', 0, 4096);
      for (const piece of marks.read(bytes)) {
        const last = recorder.take(piece);
        if (last !== undefined) over.resolve(last);
      }
    },
  });
  const opened = await watch.opened(opening);
  if (!opened.started) {
    await assertContainerRuns(container, opened.message);
    return { ended: 'not-started', message: opened.message, steps: [], oomKilled: false };
  }
  running.life.begun = true;
  using attached = opened.exec;
  const exec = { ...attached, ...tagged };
  using disk = watchDisk(container, container.diskBytes);
  const end = await Promise.race([
    over.promise,
    // If the last mark came with the last bytes, the mark wins, because this asks the engine only later.
    exitOf(container, exec, deadline.signal),
    deadline.reached,
    disk.exceeded,
    watch.lost,
  ]);

  if (typeof end === 'string') {
    running.life.over = true;
    await endExec(container, exec);
    for (const piece of marks.end()) recorder.take(piece);
    recorder.end({ ended: end });
    return {
      ended: end,
      steps: recorder.steps,
      oomKilled: await oomKilledSinceLastAsked(container, exec.id),
    };
  }
  if ('oomKills' in end) {
    const failed = recorder.steps.some((step) => step.ended !== 'exited' || step.exitCode !== 0);
    // Without a counter, the engine's events are read, which takes a wait. So skip that if all steps
    // succeeded.
    const oomKilled =
      (failed || !Number.isNaN(end.oomKills)) && (await noteOomKills(container, end.oomKills, exec.id));
    // The driver wrote nothing: there is no bash, or none that works.
    return !recorder.hasBegun
      ? {
          ended: 'not-started',
          message: firstOutput.split(secret)[0]?.trim() || 'bash cannot be started',
          steps: [],
          oomKilled,
        }
      : {
          ended: 'finished',
          steps: recorder.steps,
          oomKilled,
          devicesIntact: end.devicesIntact,
          shielded: recorder.shielded,
        };
  }
  if (end.neverStarted) {
    const message = firstOutput.trim();
    await assertContainerRuns(container, message);
    return { ended: 'not-started', message, steps: [], oomKilled: false };
  }
  const exitCode = knownExitCode(end);
  // The shell ended before its first word, with an error of its own or of the kernel: its arguments and its
  // environment are too long, for example.
  if (!recorder.hasBegun && exitCode !== 0 && exitCode !== killedExitCode && firstOutput.trim() !== '') {
    await assertContainerRuns(container, firstOutput.trim());
    return { ended: 'not-started', message: firstOutput.trim(), steps: [], oomKilled: false };
  }
  // A SIGKILL prevents the guardian's last mark. Without a SIGKILL, the mark was lost on its way, or another
  // signal ended the guardian: either way the end of the script is not known.
  if (exitCode !== killedExitCode) {
    throw execLost(
      `The shell of a script ended with exit code ${exitCode} and did not report the script's end.`,
    );
  }
  await assertContainerOutlived(container, exitCode);
  running.life.over = true;
  await endExec(container, exec);
  return killed(running, await oomKilledSinceLastAsked(container, exec.id));
}

/** The environment that loads the shield into the shells. Empty if none is requested, or there is none. */
function shieldOf(container: RunningContainer, { shield }: ScriptRequest): Record<string, string> {
  return shield && container.own !== undefined ? { LD_PRELOAD: container.own.shield } : {};
}

/** The most bytes of one step's output, given the number of steps: all outputs are kept to the end. */
function shareOf(steps: number): number {
  const all = Math.min(
    commandOutput.bytes.script,
    Math.floor(getHeapStatistics().heap_size_limit * heapPartOfOutput),
  );
  return Math.floor(all / Math.max(1, steps));
}

function scriptLines(script: string): string[] {
  if (script.includes('\0')) {
    throw new OffsiteError('A script contains a NUL character, which bash cannot read.', {
      code: 'ENGINE_SCRIPT_NUL',
      kind: 'input',
    });
  }
  const lines = script.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}
