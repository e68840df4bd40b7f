import { harnessLines } from '../bounds/sandbox.ts';
import type { ExecResult } from '../engine/exec/exec-request.ts';
import type { HarnessEnding } from '../record/harness.ts';
import type { CliStream } from './cli-stream.ts';
import type { TurnLimits } from './runner.ts';
import type { TurnStatus } from './turn-record.ts';

/**
 * Exit codes that a shell gives for a program ended by SIGHUP, SIGINT, SIGKILL or SIGTERM. Programs do not
 * send these signals to themselves.
 */
export const endedBySignal = new Set([129, 130, 137, 143]);

/** The maximum length, in characters, of a CLI's message about its end. */
const maxMessageLength = harnessLines.bytes.lastMessage;

/**
 * Decides how a turn of a CLI ended. Its stream counts for more than its exit code: some CLIs exit with 0
 * whatever happened, and some run out of memory after the turn is done.
 */
export function cliEnding(
  label: string,
  result: ExecResult,
  { status, problem, unread }: { status: TurnStatus } & Pick<CliStream, 'problem' | 'unread'>,
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
  if (unread !== undefined) {
    // Check this before other problems of the stream: an agent must not get a void trial through what it
    // makes its CLI print.
    const message = `${label} printed a line that is ${unread} to be read, so its outcome is unknown`;
    return { ended: 'agent-failed', message, exitCode };
  }
  if (problem !== undefined) {
    return {
      ended: 'runner-broke',
      message: `${label} printed a line that this version of Offsite cannot read: ${problem}`,
      exitCode,
    };
  }
  switch (status.kind) {
    case 'done':
      return { ended: 'exited', exitCode };
    case 'agent-failed':
    case 'model-failed':
    case 'runner-broke':
      return { ended: status.kind, message: status.message.slice(0, maxMessageLength), exitCode };
    case 'unknown':
    case 'started':
      return unfinished(label, result, exitCode);
  }
}

/** The CLI ended without saying how its turn ended. */
function unfinished(label: string, result: ExecResult, exitCode: number): HarnessEnding {
  if (result.oomKilled) return { ended: 'out-of-memory' };
  if (endedBySignal.has(exitCode)) {
    // Offsite did not send the signal, and only the agent's processes share the sandbox with the CLI.
    return {
      ended: 'agent-failed',
      message: `${label} was ended by a signal from inside the sandbox`,
      exitCode,
    };
  }
  const end = result.stderr.text.trim().slice(-harnessLines.bytes.lastWords);
  const lastWords = end === '' ? '' : `: ${end}`;
  return {
    ended: 'runner-broke',
    message: `${label} exited with ${exitCode} and did not say how its turn ended${lastWords}`,
    exitCode,
  };
}

function stopMessage(stop: AbortSignal): string {
  return stop.reason instanceof Error ? stop.reason.message : 'the harness was stopped';
}
