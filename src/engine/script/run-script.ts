import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { getHeapStatistics } from 'node:v8';
import { inputError } from '../../base/offsite-error.ts';
import { commandOutput } from '../../bounds/sandbox.ts';
import type { RunningContainer } from '../container/running-container.ts';
import { watchedCommand } from '../exec/execute.ts';
import { killedExitCode, knownExitCode, noteOomKills, oomKilledSinceLastAsked } from '../exec/exit-code.ts';
import { MarkReader } from '../exec/mark-reader.ts';
import { assertContainerOutlived, assertContainerRuns } from '../exec/stopped-container.ts';
import { execLost } from '../port/failure.ts';
import { MarkSeal } from './mark-seal.ts';
import { type ScriptOver, type ScriptRequest, type ScriptResult, StepRecorder } from './step-recorder.ts';

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
 * codes; one if the container's init starts it. All steps run, whatever their exit codes, unless the script
 * itself leaves (`exit`, `exec`, `set -e`). Throws an infrastructure error if the engine fails, and an input
 * error for a script that contains a NUL character.
 */
export async function runScript(container: RunningContainer, request: ScriptRequest): Promise<ScriptResult> {
  const lines = scriptLines(request.script);
  if (request.signal?.aborted) return { ended: 'canceled', steps: [], oomKilled: false };
  // Begins each mark. The script must not see it, so it is sent by stdin, not by argv or environment.
  const secret = randomBytes(16).toString('hex');
  const marks = new MarkReader(secret);
  const cap = Math.min(request.capBytes ?? commandOutput.bytes.kept, shareOf(lines.length));
  const seal = new MarkSeal(lines.length);
  const recorder = new StepRecorder(lines, seal, cap, request.clock ?? container.port.clock);
  const { steps } = recorder;
  const over = Promise.withResolvers<ScriptOver>();
  // Holds the message of the engine or shell if nothing could be started.
  let firstOutput = '';
  const takeHeld = () => {
    for (const piece of marks.end()) recorder.take(piece);
  };
  const notStarted = (message: string, oomKilled = false): ScriptResult => {
    return { ended: 'not-started', message, steps: [], oomKilled };
  };
  /** The outcome of a script whose shells were killed. It has a step that failed. */
  const killed = (oomKilled: boolean): ScriptResult => {
    takeHeld();
    recorder.breakOff(killedExitCode);
    return { ended: 'finished', steps, oomKilled, devicesIntact: false, shielded: recorder.shielded };
  };
  const { timeoutMs, signal, mayEndContainer, cwd, user } = request;
  const first = [secret, seal.key, seal.ended, seal.intact].join(' ');
  return await watchedCommand<ScriptResult, ScriptOver>(container, {
    timeoutMs,
    signal,
    mayEndContainer,
    command: {
      argv: ['/bin/sh', '-c', guardianScript, 'guardian', loopScript, driverScript],
      // The shells that report the steps must not run a file that an image names.
      env: { ...request.env, ...shieldOf(container, request), BASH_ENV: '' },
      cwd,
      user,
      stdin: `${[first, lines.length, ...lines, ...seal.pads].join('\n')}\n`,
      // So no other program gets the secret.
      readsInput: true,
      mayBeByInit: true,
      onPiece: ({ bytes }) => {
        if (firstOutput.length < 4096) firstOutput += bytes.toString('utf8', 0, 4096);
        for (const piece of marks.read(bytes)) {
          const last = recorder.take(piece);
          if (last !== undefined) over.resolve(last);
        }
      },
    },
    over: over.promise,
    printed: () => firstOutput.trim(),
    notStarted,
    killed,
    async stopped(ended, oomKilled) {
      takeHeld();
      // Before the engine has answered: the step has ended now.
      recorder.end({ ended });
      return { ended, steps, oomKilled: await oomKilled };
    },
    async ended(end, exec) {
      if ('oomKills' in end) {
        const { oomKills, devicesIntact } = end;
        const failed = steps.some((step) => step.ended !== 'exited' || step.exitCode !== 0);
        // Without a counter, the engine's events are read, which takes a wait. So skip that if all steps
        // succeeded.
        const mayBeKilled = failed || !Number.isNaN(oomKills);
        const oomKilled = mayBeKilled && (await noteOomKills(container, oomKills, exec.id));
        // The driver wrote nothing: there is no bash, or none that works.
        if (!recorder.hasBegun)
          return notStarted(firstOutput.split(secret)[0]?.trim() || 'bash cannot be started', oomKilled);
        return { ended: 'finished', steps, oomKilled, devicesIntact, shielded: recorder.shielded };
      }
      const exitCode = knownExitCode(end);
      // The shell ended before its first word, with an error of its own or of the kernel: its arguments and
      // its environment are too long, for example.
      if (!recorder.hasBegun && exitCode !== 0 && exitCode !== killedExitCode && firstOutput.trim() !== '') {
        await assertContainerRuns(container, firstOutput.trim());
        return notStarted(firstOutput.trim());
      }
      // The guardian ends with 0, after its last mark, and init's own mark comes through the same pipe after
      // that: if this one is missing, a process of the container did that, and the script fails. What the
      // engine started may have lost its output, and ended because of that.
      if (exitCode !== killedExitCode && exec.id !== undefined) {
        throw execLost(
          `The shell of a script ended with exit code ${exitCode} and did not report the script's end.`,
        );
      }
      await assertContainerOutlived(container, exitCode);
      await exec.endRest();
      return killed(await oomKilledSinceLastAsked(container, exec.id));
    },
  });
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
    throw inputError('ENGINE_SCRIPT_NUL', 'A script contains a NUL character, which bash cannot read.');
  }
  const lines = script.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}
