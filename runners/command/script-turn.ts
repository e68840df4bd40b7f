import type { TrajectoryEntry } from '../../src/contract/report.ts';
import type { ScriptResult, ScriptStep } from '../../src/engine/script/script-request.ts';
import type { HarnessContext, HarnessEnding, HarnessRun, TurnLimits } from '../../src/harness/runner.ts';
import { shownOutput } from '../../src/harness/streamed-turn.ts';
import { notStarted } from './not-started.ts';

/** 128 + SIGKILL: the exit code of a killed program. */
const killed = 137;

/**
 * Runs the profile's script. Each command of the script is a command of the trial, unless the profile says
 * where the commands come from. In that case, only the script's output is kept.
 */
export async function scriptTurn(
  { container, profile, workspace }: HarnessContext,
  env: Record<string, string>,
  { timeoutMs, signal, stop }: TurnLimits,
): Promise<HarnessRun> {
  const result = await container.runScript({
    script: profile.run ?? '',
    env,
    cwd: workspace,
    timeoutMs,
    signal: AbortSignal.any([signal, stop]),
  });
  if (result.ended === 'not-started') throw notStarted(profile, result.message);
  const { steps } = result;
  const ending = endingOf(result, timeoutMs, stop);
  if (profile.trajectory === undefined) return { ending, trajectory: steps.map(entryOf), events: [] };
  const lastOutput = shownOutput([steps.map(({ output }) => output).join('')]);
  return { ending, trajectory: [], events: [], lastOutput };
}

function endingOf({ ended, steps }: ScriptResult, timeoutMs: number, stop: AbortSignal): HarnessEnding {
  if (ended === 'canceled' && stop.aborted)
    return { ended: 'stopped', message: String(stop.reason?.message) };
  if (ended === 'timed-out') return { ended, afterMs: timeoutMs };
  if (ended === 'out-of-disk') return { ended };
  const last = steps.at(-1);
  if (last === undefined) return { ended: 'exited', exitCode: 0 };
  return { ended: 'exited', exitCode: last.ended === 'exited' ? last.exitCode : killed };
}

function entryOf(step: ScriptStep): TrajectoryEntry {
  return {
    _tag: 'command',
    command: step.command,
    startedAtMillis: step.startedAtMillis,
    finishedAtMillis: step.finishedAtMillis,
    output: step.output,
    outputTruncated: step.outputTruncated,
    ...(step.ended === 'exited' && { exitCode: step.exitCode }),
  };
}
