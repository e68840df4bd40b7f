import { type DeadlineCause, startDeadline } from '../../src/base/deadline.ts';
import { OffsiteError } from '../../src/base/offsite-error.ts';
import type { ChatAnswer, ChatMessage } from '../../src/gateway/chat/chat.ts';
import type {
  HarnessContext,
  HarnessEnding,
  HarnessRun,
  Runner,
  TurnLimits,
} from '../../src/harness/runner.ts';
import { type BashContext, runCall, shellTool, type Turn } from './shell-tool.ts';

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
  return new OffsiteError(`the bash harness${of} has no model to ask`, {
    code: 'RUNNER_NEEDS_MODEL',
    kind: 'input',
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
