import { startDeadline } from '../../base/deadline.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { chatAnswers } from '../../bounds/model.ts';
import { hintFor } from '../../gateway/chat/model-errors.ts';
import type { ModelAccount } from '../../gateway/gateway.ts';
import type { Runner } from '../../harness/runner.ts';
import { saysTooLong } from '../../harness/turn-record.ts';
import type { Cause } from '../../record/cause.ts';
import type { HarnessEnding } from '../../record/harness.ts';
import { type Blame, blameOf, type Evidence, nothingTried } from '../blame.ts';
import type { TrialSandbox } from '../phase.ts';
import type { TrialSpec } from '../spec.ts';
import type { Conversation } from './conversation.ts';
import { openModels } from './models.ts';

type HarnessSandbox = Pick<TrialSandbox, 'models' | 'parts' | 'signal'>;

/**
 * Why a harness did not end as it should, and whose fault that is. Undefined if there is nothing to tell. Its
 * work is graded then, and also if the agent is the cause.
 *
 * Once the model has answered, the agent may have acted: it can kill its CLI and write anything into the
 * CLI's output. The gateway's own account, which the agent cannot reach, shows what its model did.
 */
export async function endingCause(
  runner: Runner,
  { ending, lastOutput }: Pick<Conversation, 'ending' | 'lastOutput'>,
  spec: TrialSpec,
  sandbox: HarnessSandbox,
): Promise<Cause | undefined> {
  const account = await sandbox.models?.session.account();
  const evidence: Evidence = {
    ...nothingTried,
    agent: agentSeen(runner, spec, sandbox, account),
    model: modelSeen(account),
    harness: endingSeen(ending, runner, sandbox),
  };
  let decision = blameOf(evidence);
  if (decision.kind === 'try') decision = blameOf({ ...evidence, probe: await modelProbed(spec, sandbox) });
  const problem = problemOf(ending);
  if (decision.kind !== 'blame') {
    return ending.ended === 'exited' ? undefined : { kind: 'agent', phase: 'harness', message: problem };
  }
  return causeOfBlame(decision, { ending, problem, lastOutput, name: spec.harness, account });
}

/**
 * Whether the agent's model answers a short question. It is asked in a session of its own, so that it is no
 * part of what the trial asked and used.
 */
async function modelProbed(spec: TrialSpec, { parts, signal }: HarnessSandbox): Promise<Evidence['probe']> {
  // A recording answers only what the trial asks.
  if (spec.replay) return 'answers';
  await using models = openModels({ ...spec, user: undefined, judges: [] }, parts);
  if (!models) return 'answers';
  using deadline = startDeadline(parts.clock, chatAnswers.time.answer, signal);
  try {
    await models.session.chat('agent', { messages: [{ from: 'user', text: 'Say yes.' }] }, deadline.signal);
    return 'answers';
  } catch (error) {
    signal.throwIfAborted();
    // Without an answer, but with a budget that is spent, for example, nothing is known of the model.
    return error instanceof OffsiteError && error.kind === 'input' ? 'answers' : 'silent';
  }
}

/** Whether an agent was there, as far as grading needs to know it. */
export async function agentWhoLeft(
  spec: TrialSpec,
  { parts, models, restored }: Pick<TrialSandbox, 'parts' | 'models' | 'restored'>,
): Promise<Evidence['agent']> {
  const runner = parts.runners.find(({ name }) => name === spec.harness);
  if (!runner || restored) return 'acted';
  return agentSeen(runner, spec, { models }, await models?.session.account());
}

function agentSeen(
  { wires }: Runner,
  spec: TrialSpec,
  { models }: Pick<TrialSandbox, 'models'>,
  account: ModelAccount | undefined,
): Evidence['agent'] {
  // The `command` harness is any program, and may be an agent without a model.
  if (wires.length === 0 || account?.agent.acted) return 'acted';
  if (!spec.modelConfig || !models || !account) return 'unseen';
  const { connections } = account;
  // Over an open network, or through a named host, it may have asked a model that is not ours.
  const wentElsewhere = connections.some(({ receivedBytes }) => receivedBytes > 0);
  return spec.sandbox.network === 'open' || wentElsewhere ? 'unseen' : 'absent';
}

function modelSeen(account: ModelAccount | undefined): Evidence['model'] {
  if (!account?.usage.some(({ role }) => role === 'agent')) return 'unasked';
  const { acted, modelFailure, lastFailure } = account.agent;
  if (modelFailure !== undefined) return 'failed';
  if (lastFailure !== undefined) return 'refused';
  return acted ? 'answered' : 'unanswered';
}

function endingSeen(
  ending: HarnessEnding,
  { reportsModelFailure = true }: Runner,
  { models }: HarnessSandbox,
): Evidence['harness'] {
  if (models?.session.overBudget.aborted) return 'stopped';
  switch (ending.ended) {
    case 'exited':
      if (!reportsModelFailure) return ending.exitCode === 0 ? 'mute' : 'crashed';
      return ending.exitCode === 0 ? 'exited' : 'exited with an error';
    case 'agent-failed':
      return 'gave up';
    case 'model-failed':
    case 'runner-broke':
      return 'crashed';
    case 'timed-out':
      return 'timed out';
    case 'out-of-disk':
    case 'out-of-memory':
      return 'out of room';
    case 'stopped':
      return 'stopped';
  }
}

/** How it ended, in words. */
function problemOf(ending: HarnessEnding): string {
  switch (ending.ended) {
    case 'exited':
      return `the harness exited with ${ending.exitCode}`;
    case 'timed-out':
      return `the harness was stopped after ${ending.afterMs / 1000} s`;
    case 'out-of-disk':
      return 'the harness was stopped because it wrote more than the sandbox allows';
    case 'out-of-memory':
      return 'the harness was killed because it used more memory than the sandbox has';
    default:
      return ending.message;
  }
}

interface Ended {
  ending: HarnessEnding;
  problem: string;
  lastOutput: string | undefined;
  /** Of the harness. */
  name: string;
  account: ModelAccount | undefined;
}

function causeOfBlame(
  { blame, why }: { blame: Blame; why: string },
  { ending, problem, lastOutput, name, account }: Ended,
): Cause {
  const phase = 'harness';
  const isAsked = account?.usage.some(({ role }) => role === 'agent') === true;
  switch (blame) {
    case 'harness': {
      const when = isAsked ? 'before its model answered' : 'before it asked its model anything';
      const message = `${name} ended with an error ${when}: ${problem}`;
      return { kind: 'harness', phase, message, ...(lastOutput !== undefined && { output: lastOutput }) };
    }
    case 'model':
      return { kind: 'model', phase, message: modelMessage(ending, problem, account) };
    default:
      return { kind: 'unknown', phase, message: `${problem}; it is not known whose fault that is: ${why}` };
  }
}

function modelMessage(ending: HarnessEnding, problem: string, account: ModelAccount | undefined): string {
  const { acted, modelFailure, lastFailure = modelFailure } = account?.agent ?? {};
  if (lastFailure === undefined) return `the model did not answer: ${problem}`;
  if (!acted && [problem, lastFailure].some(saysTooLong)) {
    const message = "the model's context is too small for the first request of this harness";
    return `${message}: ${lastFailure}\nRaise the context that its server holds.`;
  }
  const last = account?.exchanges.findLast(({ role }) => role === 'agent');
  return withHint(ending.ended === 'exited' ? lastFailure : withServersWords(problem, lastFailure), last);
}

/** The CLI's own message may be a guess, so what the server said comes first. */
function withServersWords(message: string, failure: string | undefined): string {
  const words = failure?.replace(/^.*?: answered[^:]*: /, '');
  // A body that the CLI quotes is not for people.
  if (failure && words && message.startsWith('{') && message.includes(words)) return failure;
  if (failure?.includes(message)) return failure;
  if (words === undefined || message.includes(words)) return message;
  return `${failure}\nThe harness says: ${message}`;
}

/** Statuses that last until somebody changes the configuration. */
const wrongSettings: ReadonlySet<number | undefined> = new Set([401, 403, 404]);

function withHint(message: string, last: ModelAccount['exchanges'][number] | undefined): string {
  const { status } = last ?? {};
  return status !== undefined && wrongSettings.has(status) ? `${message}\n${hintFor(status)}` : message;
}
