import { harnessLines } from '../bounds/sandbox.ts';
import type { ExecResult } from '../engine/exec/exec-request.ts';
import type { HarnessEnding, TurnLimits } from './runner.ts';
import type { Told } from './turn-record.ts';

/**
 * What a shell says of a program that SIGHUP, SIGINT, SIGKILL or SIGTERM ended, which no program does to
 * itself.
 */
const endedBySignal = new Set([129, 130, 137, 143]);

/** Characters that are kept of what a CLI says of its end. */
const MESSAGE_LENGTH = harnessLines.bytes.lastMessage;

/**
 * How a turn of a CLI ended. What its stream said counts for more than its exit code: some exit with 0
 * whatever happened, and some run out of memory after all is done.
 */
export function cliEnding(
  label: string,
  result: ExecResult,
  { told, trouble, isOverlarge }: { told: Told; trouble: string | undefined; isOverlarge: boolean },
  { timeoutMs, stop }: TurnLimits,
): HarnessEnding {
  switch (result.ended) {
    case 'canceled':
      return { ended: 'stopped', message: stopMessage(stop) };
    case 'timed-out':
      return { ended: 'timed-out', afterMs: timeoutMs };
    case 'out-of-disk':
      return { ended: 'out-of-disk' };
    case 'not-started':
      return { ended: 'runner-broke', message: `${label} could not be started: ${result.message}` };
    case 'exited':
      break;
  }
  const { exitCode } = result;
  if (isOverlarge) {
    // Before anything else that is wrong with the stream: no agent is to earn a void by having its CLI print
    // much.
    const message = `${label} printed a line that is too large to be read, so that nobody knows how the turn went`;
    return { ended: 'agent-failed', message, exitCode };
  }
  if (trouble !== undefined) {
    return {
      ended: 'runner-broke',
      message: `${label} printed what this Offsite cannot read: ${trouble}`,
      exitCode,
    };
  }
  switch (told.told) {
    case 'done':
      return { ended: 'exited', exitCode };
    case 'agent-failed':
    case 'model-failed':
    case 'runner-broke':
      return { ended: told.told, message: told.message.slice(0, MESSAGE_LENGTH), exitCode };
    case 'nothing':
    case 'begun':
      return unfinished(label, result, exitCode);
  }
}

/** It is gone, and has not said how its turn ended. */
function unfinished(label: string, result: ExecResult, exitCode: number): HarnessEnding {
  if (result.oomKilled) return { ended: 'out-of-memory' };
  if (endedBySignal.has(exitCode)) {
    // Nothing but what the agent runs is in the sandbox with it, and it was not us.
    return {
      ended: 'agent-failed',
      message: `${label} was ended by a signal from within the sandbox`,
      exitCode,
    };
  }
  const lastWords = result.stderr.text.trim().slice(-harnessLines.bytes.lastWords);
  return {
    ended: 'runner-broke',
    message: `${label} exited with ${exitCode} and did not say how its turn ended${lastWords === '' ? '' : `: ${lastWords}`}`,
    exitCode,
  };
}

function stopMessage(stop: AbortSignal): string {
  return stop.reason instanceof Error ? stop.reason.message : 'the harness was stopped';
}
