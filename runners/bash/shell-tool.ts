import { OffsiteError } from '../../src/base/offsite-error.ts';
import type { TrajectoryEntry } from '../../src/contract/report.ts';
import type { ExecResult } from '../../src/engine/exec/exec-request.ts';
import type { ChatTool, ToolCall } from '../../src/gateway/chat/chat.ts';
import type { HarnessContext, HarnessEnding, HarnessRun, ModelAccess } from '../../src/harness/runner.ts';

export type BashContext = HarnessContext & { model: ModelAccess };

/** The result of a turn, without its ending. */
export type Turn = Omit<HarnessRun, 'ending'>;

const defaultTimeoutSeconds = 120;
const maxTimeoutSeconds = 600;
/**
 * The bytes kept of a command's output, from its beginning and end, for the model and the trajectory. About
 * 8,000 tokens.
 */
const outputBytes = 32 * 1024;

export const shellTool: ChatTool = {
  name: 'bash',
  description:
    'Runs a command with bash and gives its output and exit code. Long outputs lose their middle. ' +
    'Programs that ask for input get none.',
  parameters: {
    type: 'object',
    properties: {
      command: { type: 'string', description: 'The command, or several lines of them.' },
      timeout: {
        type: 'integer',
        minimum: 1,
        maximum: maxTimeoutSeconds,
        description: `Seconds until it is killed. Default: ${defaultTimeoutSeconds}.`,
      },
    },
    required: ['command'],
    additionalProperties: false,
  },
};

interface CallOutcome {
  result: { text: string; failed: boolean };
  /** The ending of the whole turn, if this call ends it. */
  ending?: HarnessEnding | 'cut-off';
}

/**
 * Runs the model's tool call and adds it to the turn's record.
 *
 * @param cut whether the model's answer was cut, so that the call may be incomplete
 */
export async function runCall(
  context: BashContext,
  call: ToolCall,
  cut: boolean,
  run: Turn,
  deadline: AbortSignal,
): Promise<CallOutcome> {
  const wanted = commandOf(call, cut);
  if ('mistake' in wanted) {
    const { name, arguments: input } = call;
    const output = wanted.mistake;
    run.events.push({ kind: 'tool', at: context.clock.now(), name, input, output, failed: true });
    return { result: { text: output, failed: true } };
  }
  const command = {
    // Both outputs share one stream, which keeps their order.
    argv: ['bash', '-c', 'exec bash -lc "$1" 2>&1', 'bash', wanted.command],
    env: context.env,
    cwd: context.workspace,
    timeoutMs: wanted.seconds * 1000,
    signal: deadline,
    capBytes: outputBytes,
  };
  const startedAtMillis = context.clock.now();
  const result = await context.container.exec(command).catch(damageOf);
  if ('damage' in result) {
    // What was done so far is graded.
    const text = result.damage;
    return { result: { text, failed: true }, ending: { ended: 'agent-failed', message: text } };
  }
  const times = { startedAtMillis, finishedAtMillis: context.clock.now() };
  run.trajectory.push(entryOf(wanted.command, times, result));
  const outcome = { result: { text: resultText(result, wanted.seconds), failed: result.exitCode !== 0 } };
  if (result.ended === 'canceled') return { ...outcome, ending: 'cut-off' };
  if (result.ended === 'out-of-disk') return { ...outcome, ending: { ended: 'out-of-disk' } };
  return outcome;
}

/** What the command before it did to the sandbox, such as using up its memory. Other failures are thrown. */
function damageOf(thrown: unknown): { damage: string } {
  const isDamage = thrown instanceof OffsiteError && thrown.code === 'ENGINE_CONTAINER_DAMAGED';
  if (!isDamage) throw thrown;
  return { damage: thrown.message };
}

function commandOf(call: ToolCall, cut: boolean): { command: string; seconds: number } | { mistake: string } {
  if (cut)
    return { mistake: 'Your answer was cut at its limit of tokens, so nothing was run. Take smaller steps.' };
  if (call.name !== shellTool.name)
    return { mistake: `There is no tool ${call.name}; the only one is ${shellTool.name}.` };
  const { command, timeout = defaultTimeoutSeconds } = call.arguments as Record<string, unknown>;
  if (typeof command !== 'string' || command.trim() === '')
    return { mistake: 'The arguments must be a JSON object with a string "command".' };
  if (command.includes('\0')) return { mistake: 'A command cannot contain a NUL character.' };
  if (typeof timeout !== 'number' || !(timeout > 0))
    return { mistake: '"timeout" must be a number of seconds.' };
  return { command, seconds: Math.min(timeout, maxTimeoutSeconds) };
}

function resultText(result: ExecResult, seconds: number): string {
  const output = result.stdout.text;
  switch (result.ended) {
    case 'exited':
      return `${output}\n[exit code ${result.exitCode}${result.oomKilled ? '; the memory ran out' : ''}]`;
    case 'timed-out':
      return `${output}\n[killed after ${seconds} s]`;
    case 'not-started':
      return `[could not be started: ${result.message}]`;
    case 'canceled':
    case 'out-of-disk':
      return `${output}\n[killed]`;
  }
}

function entryOf(
  command: string,
  times: Pick<TrajectoryEntry, 'startedAtMillis' | 'finishedAtMillis'>,
  result: ExecResult,
): TrajectoryEntry {
  const { text, truncated } = result.stdout;
  return {
    _tag: 'command',
    command,
    ...times,
    output: text,
    outputTruncated: truncated,
    ...(result.ended === 'exited' && { exitCode: result.exitCode }),
  };
}
