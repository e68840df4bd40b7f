import { RequestError } from '@agentclientprotocol/sdk';
import { messageOf } from '../../src/base/offsite-error.ts';
import { harnessLines } from '../../src/bounds/sandbox.ts';
import type { ExecResult } from '../../src/engine/exec/exec-request.ts';
import { cliEnding } from '../../src/harness/cli-ending.ts';
import type { HarnessEnding, TurnLimits } from '../../src/harness/runner.ts';
import type { TurnStatus } from '../../src/harness/turn-record.ts';

/** How the work of a turn ended. */
export type PromptOutcome =
  /** The agent reported the end of the turn. */
  | { how: 'answered'; status: TurnStatus }
  /** Its process ended without an answer. */
  | { how: 'ended'; result: ExecResult }
  /** No more messages can be exchanged with it. */
  | { how: 'broken'; reason: string }
  | { how: 'timed-out' | 'canceled' };

const label = 'the agent';

const stopMessages: Readonly<Record<string, string>> = {
  max_tokens: 'an answer of its model reached the limit of tokens',
  max_turn_requests: 'it reached its limit of requests to its model',
  refusal: 'its model refused to continue',
  cancelled: 'it cancelled its turn itself',
};

/** The status that a stop reason of the protocol stands for. */
export function statusOf(stopReason: string): TurnStatus {
  if (stopReason === 'end_turn') return { kind: 'done' };
  const message = stopMessages[stopReason] ?? `it stopped for an unknown reason: ${stopReason}`;
  return { kind: 'agent-failed', message };
}

/** What an agent says of an error, with its details. */
export function textOf(error: unknown): string {
  const message = messageOf(error);
  if (!(error instanceof RequestError) || error.data === undefined || error.data === null) return message;
  const data = typeof error.data === 'string' ? error.data : JSON.stringify(error.data);
  return `${message}: ${data}`.slice(0, harnessLines.bytes.lastMessage);
}

/** The ending of a turn. There is an exit code only if the agent's process ended by itself. */
export function endingOf(outcome: PromptOutcome, limits: TurnLimits): HarnessEnding {
  switch (outcome.how) {
    case 'answered':
      return endingOfStatus(outcome.status);
    case 'ended':
      return cliEnding(
        label,
        outcome.result,
        { status: { kind: 'started' }, problem: undefined, unread: undefined },
        limits,
      );
    case 'broken':
      return { ended: 'agent-failed', message: `${label} ${outcome.reason}` };
    case 'timed-out':
      return { ended: 'timed-out', afterMs: limits.timeoutMs };
    case 'canceled': {
      const { reason } = limits.stop;
      return {
        ended: 'stopped',
        message: reason instanceof Error ? reason.message : 'the agent was stopped',
      };
    }
  }
}

function endingOfStatus(status: TurnStatus): HarnessEnding {
  switch (status.kind) {
    case 'agent-failed':
    case 'model-failed':
    case 'runner-broke':
      return { ended: status.kind, message: status.message.slice(0, harnessLines.bytes.lastMessage) };
    default:
      return { ended: 'exited', exitCode: 0 };
  }
}
