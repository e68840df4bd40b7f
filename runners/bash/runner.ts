import { type DeadlineCause, startDeadline } from '../../src/base/deadline.ts';
import { inputError, OffsiteError } from '../../src/base/offsite-error.ts';
import type { TrajectoryEntry } from '../../src/contract/report.ts';
import type { ExecResult } from '../../src/engine/exec/exec-request.ts';
import type { ChatAnswer, ChatMessage, ChatTool, ToolCall } from '../../src/gateway/chat/chat.ts';
import type {
  HarnessContext,
  HarnessRun,
  ModelAccess,
  Runner,
  TurnLimits,
} from '../../src/harness/runner.ts';
import type { HarnessEnding } from '../../src/record/harness.ts';

/**
 * Offsite's own minimal agent: a model with a shell. The loop runs in this process, and only its commands run
 * in the sandbox. So the trajectory is exact, and it works with any model on any wire.
 */
export const bash: Runner = {
  name: 'bash',
  label: 'Bash (a model with one shell tool, run by Offsite)',
  wires: 'any',
  reportsCommands: true,
  continues: true,
  mcp: [],
  limits: ['turns'],
  open(context) {
    const { model } = context;
    if (!model) throw needsModel(context);
    const conversation: ChatMessage[] = [];
    return { turn: (message, limits) => takeTurn({ ...context, model }, conversation, message, limits) };
  },
};

function needsModel({ profile }: HarnessContext): OffsiteError {
  const of = profile.name === undefined ? '' : ` of profile ${profile.name}`;
  return inputError('RUNNER_NEEDS_MODEL', `the bash harness${of} has no model to ask`, {
    hint: "Configure the variant's model under models in offsite.yaml, and give the sandbox network: model.",
  });
}

/** Raise this when a change of the prompt, the tool or the loop changes what agents can do. */
const harnessVersion = '1';
const defaultMaxTurns = 50;

const system = `You solve the user's task by running commands in a Linux sandbox with the tool "bash".
Each command starts in a new shell in the task's folder: changes of folder and variables do not last, \
files do.
Nobody can answer questions or watch. Look before you change things, and check your work by running it.
When the task is done, answer with a short summary and call no tool.`;

/**
 * Asks the model and runs its commands until the model calls no tool or something ends the turn. The result
 * always contains what was done until then.
 */
async function takeTurn(
  context: BashContext,
  conversation: ChatMessage[],
  message: string,
  { timeoutMs, signal, stop, left }: TurnLimits,
): Promise<HarnessRun> {
  const { clock } = context;
  const ended = AbortSignal.any([signal, stop]);
  using deadline = startDeadline(clock, timeoutMs, ended);
  // The deadline's signal aborts slightly later than its caller's signal. A failure caused by the caller's
  // signal must not look like a failure of the model.
  const cutOff = AbortSignal.any([ended, deadline.signal]);
  const run: Turn = {
    trajectory: [],
    events: [],
    version: harnessVersion,
  };
  conversation.push({ from: 'user', text: withLeft(message, left) });
  const ending = await work(context, conversation, run, { cutOff, left });
  if (ending !== 'cut-off') return { ...run, ending };
  const cause = await deadline.reached;
  signal.throwIfAborted();
  return { ...run, ending: endingOf(cause, timeoutMs, stop) };
}

async function work(
  context: BashContext,
  conversation: ChatMessage[],
  run: Turn,
  { cutOff, left }: { cutOff: AbortSignal; left: TurnLimits['left'] },
): Promise<HarnessEnding | 'cut-off'> {
  const maxTurns = context.profile.maxTurns ?? defaultMaxTurns;
  for (let turn = 0; turn < maxTurns; turn++) {
    const answer = await ask(context, conversation, cutOff);
    // An answer that arrives when the time is over is ignored.
    if (answer === 'cut-off' || cutOff.aborted) return 'cut-off';
    if ('ended' in answer) return answer;
    conversation.push({ from: 'model', text: answer.text, calls: answer.calls });
    if (answer.text !== '') {
      run.events.push({ kind: 'message', at: context.clock.now(), text: answer.text });
      run.finalMessage = answer.text;
    }
    if (answer.stopped === 'refused') {
      return { ended: 'agent-failed', message: `the model refused to continue: ${answer.text}` };
    }
    if (answer.calls.length === 0) {
      if (answer.stopped !== 'length') return { ended: 'exited', exitCode: 0 };
      return {
        ended: 'agent-failed',
        message: "the model's answer was cut at its limit of tokens (maxOutputTokens)",
      };
    }
    for (const call of answer.calls) {
      const { result, ending } = await runCall(context, call, answer.stopped === 'length', run, cutOff);
      if (ending !== undefined) return ending;
      const { text, failed } = result;
      conversation.push({ from: 'tool', callId: call.id, text: withLeft(text, left), failed });
    }
  }
  return { ended: 'agent-failed', message: `it did not finish within ${maxTurns} turns (maxTurns)` };
}

/** A text for the model, with a line about the time and budget that are left, if the profile wants one. */
function withLeft(text: string, left: TurnLimits['left']): string {
  if (!left) return text;
  const { timeMs, tokens, usd, requests } = left();
  const parts = [
    `${Math.floor(timeMs / 1000)} s`,
    ...(tokens === undefined ? [] : [`${Math.floor(tokens)} tokens`]),
    ...(usd === undefined ? [] : [`${usd.toFixed(2)} USD`]),
    ...(requests === undefined ? [] : [`${requests} requests`]),
  ];
  return `${text}\n[left: ${parts.join(', ')}]`;
}

async function ask(
  { model }: BashContext,
  messages: readonly ChatMessage[],
  cutOff: AbortSignal,
): Promise<ChatAnswer | HarnessEnding | 'cut-off'> {
  try {
    return await model.chat(
      { model: model.name, system, messages, tools: [shellTool], maxTokens: model.maxOutputTokens },
      cutOff,
    );
  } catch (error) {
    if (cutOff.aborted) return 'cut-off';
    if (!(error instanceof OffsiteError)) throw error;
    const { code, message } = error;
    if (code === 'BUDGET_SPENT' || code === 'BUDGET_EXCEEDED') return { ended: 'stopped', message };
    return { ended: code === 'MODEL_CONTEXT_FULL' ? 'agent-failed' : 'model-failed', message };
  }
}

function endingOf(cause: DeadlineCause, afterMs: number, stop: AbortSignal): HarnessEnding {
  if (cause === 'timed-out') return { ended: 'timed-out', afterMs };
  return {
    ended: 'stopped',
    message: stop.reason instanceof Error ? stop.reason.message : String(stop.reason),
  };
}

type BashContext = HarnessContext & { model: ModelAccess };

/** The result of a turn, without its ending. */
type Turn = Omit<HarnessRun, 'ending'>;

const defaultTimeoutSeconds = 120;
const maxTimeoutSeconds = 600;
/**
 * The bytes kept of a command's output, from its beginning and end, for the model and the trajectory. About
 * 8,000 tokens.
 */
const outputBytes = 32 * 1024;

const shellTool: ChatTool = {
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
async function runCall(
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
