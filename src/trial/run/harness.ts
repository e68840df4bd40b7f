import type { Clock } from '../../base/clock.ts';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { commandOutput } from '../../bounds/sandbox.ts';
import type { Container } from '../../engine/container.ts';
import { isSuccess, printedBy } from '../../engine/exec/exec-request.ts';
import type { BudgetLeft } from '../../gateway/gateway.ts';
import type { CommandSource, Runner, TimeLeft } from '../../harness/runner.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import { mcpObstacle } from '../../suite/planned-variant.ts';
import { openSimulatedUser, type UserTurn } from '../../validate/simulated-user.ts';
import { TrialFailure, taskFailure } from '../blame.ts';
import type { OpenRecord, Phase, TrialSandbox } from '../phase.ts';
import { harnessEnvironment, sandboxPaths } from '../prepare/environment.ts';
import { modelAccess, reachThrough } from '../prepare/model-port.ts';
import { asUser } from '../prepare/started-sandbox.ts';
import type { TrialSpec } from '../spec.ts';
import { type Answerer, type Conversation, converse, type Utterance } from './conversation.ts';
import { endingCause } from './ending-cause.ts';
import { lackingCause } from './first-offer.ts';
import { hostsOf, refuseMissed, type TrialModels } from './models.ts';

/** Runs the harness and ends all of its processes. */
export const harness: Phase = { name: 'harness', run };

async function run(spec: TrialSpec, sandbox: TrialSandbox): Promise<OpenRecord> {
  const { parts, container, port, models, signal } = sandbox;
  const runner = parts.runners.find(({ name }) => name === spec.harness);
  if (!runner) {
    throw new TrialFailure({
      kind: 'infrastructure',
      phase: 'harness',
      message: `there is no harness "${spec.harness}"`,
    });
  }
  if (sandbox.whole.steps) await models?.session.reachOnly(hostsOf(spec.sandbox));
  if (port && models) port.routeTo(models.session.handler);
  await port?.relay.ready;
  const { worker, home } = await placeOf(spec, sandbox);
  // What the harness runs is the agent's.
  const agents: Container = {
    ...worker,
    exec: (request) => worker.exec({ ...request, mayEndContainer: true }),
    runScript: (request) => worker.runScript({ ...request, mayEndContainer: true }),
  };
  const { mcpServers = {} } = spec.agent ?? {};
  const deviations = await giveSkills(runner, worker, spec, sandbox);
  const lacking = mcpObstacle(mcpServers, runner);
  if (lacking !== undefined) deviations.push(lacking);
  const env = {
    ...harnessEnvironment(spec, container),
    ...(port && reachThrough(port.relay, spec)),
  };
  const session = runner.open({
    container: agents,
    profile: { ...spec.profile, mcpServers: { ...spec.profile.mcpServers, ...mcpServers } },
    env,
    workspace: container.workingDir,
    home,
    model: models && modelAccess(runner, spec, port?.relay, models.session),
    clock: parts.clock,
  });
  const budgetLeft = () => models?.session.left() ?? {};
  const timeLeft = (until: number) => passTimeLeft(until, { clock: parts.clock, env, budgetLeft });
  const stops = [models?.session.overBudget, models?.session.replayMissed, port?.relay.lost].filter(
    (stop) => stop !== undefined,
  );
  const conversation = await converse(
    session,
    spec.prompt,
    answererOf(spec, models),
    {
      timeoutMs: spec.sandbox.timeouts.harness,
      signal,
      stop: AbortSignal.any(stops),
      passTimeLeft: spec.profile.tellDeadline ? timeLeft : undefined,
    },
    parts.clock,
  );
  await session.end?.();
  signal.throwIfAborted();
  refuseMissed(models?.session);
  // Nothing that the tests of a step start may ask a model.
  if (sandbox.isLastStep) models?.session.close('the harness has ended');
  else port?.routeTo(undefined);
  // Processes that the harness left behind must not change what is graded.
  await container.killAll(signal);
  // If the sandbox lost the connection to its model, the trial says nothing about the agent, whatever the
  // harness did then.
  port?.relay.lost.throwIfAborted();
  const source = session.commandsFrom ?? (runner.reportsCommands ? 'report' : 'traffic');
  // Waits until the last exchange is kept, which also shows its commands.
  const ended = await endingCause(runner, conversation, spec, sandbox);
  const isGraded = ended === undefined || ended.kind === 'agent';
  // In a later step, the agent may have ended the server.
  const offer = isGraded && sandbox.step === 0 && runner.startsWithoutServers ? models?.offer : undefined;
  const cause = lackingCause(runner.name, offer, conversation.lastOutput) ?? ended;
  return { ...foundOf(conversation, source, models), ...(deviations.length > 0 && { deviations }), cause };
}

/** The sandbox as the harness's user has it, and a folder for the harness's own files. */
async function placeOf(spec: TrialSpec, { step, container, users, signal }: TrialSandbox) {
  const home = step === 0 ? sandboxPaths.harness : `${sandboxPaths.harness}-${step + 1}`;
  const user = spec.agent?.user === undefined ? undefined : users.get(spec.agent.user);
  if (!user) return { worker: container, home };
  const { uid, gid } = user;
  await container.put([{ path: home, folder: true, mode: 0o700, uid, gid }], '/', signal);
  return { worker: asUser(container, user), home };
}

/** Resolves with what the harness does not get. */
async function giveSkills(
  { name, skillsFolder }: Runner,
  worker: Container,
  spec: TrialSpec,
  { step, signal }: TrialSandbox,
): Promise<string[]> {
  const from = spec.agent?.skills;
  if (from === undefined) return [];
  if (skillsFolder === undefined)
    return [`the ${name} harness has no folder for skills: it was given only their path, ${from}`];
  try {
    await copySkills(worker, { from, to: skillsFolder }, signal);
  } catch (error) {
    // The agent of an earlier step may have removed them.
    if (step === 0 || !(error instanceof TrialFailure)) throw error;
    return [error.message];
  }
  return [];
}

function foundOf(conversation: Conversation, source: CommandSource, models: TrialModels | undefined) {
  const { ending, events, finalMessage, version, usage, commandCount, turns, lastOutput } = conversation;
  return {
    harness: ending,
    harnessOutput: lastOutput,
    ...commandsOf(conversation, source, models),
    events,
    finalMessage,
    turns,
    harnessVersion: version,
    harnessCounts: { usage, commands: commandCount },
  };
}

function commandsOf(
  { trajectory, isCut }: Conversation,
  source: CommandSource,
  models: TrialModels | undefined,
): Partial<TrialRecord> {
  if (source === 'none') return {};
  const derivedIsCut = source === 'traffic' && models?.derived.isCut === true;
  return {
    trajectory,
    derivedTrajectory: models?.derived.entries(),
    harnessTellsCommands: source === 'report',
    ...((isCut || derivedIsCut) && { commandsCut: true }),
  };
}

/**
 * Copies the skills of a case to where a harness looks for them, as the user of the harness. Call it before
 * the harness runs. Throws a {@link TrialFailure} of kind `task` if they cannot be copied.
 *
 * @param from an absolute folder in the sandbox
 * @param to a folder below the user's home: `~/…`
 */
export async function copySkills(
  container: Container,
  { from, to }: { from: string; to: `~/${string}` },
  signal: AbortSignal,
): Promise<void> {
  const result = await container.exec({
    argv: ['/bin/sh', '-c', copy, 'sh', from, to.slice(2)],
    timeoutMs: commandOutput.time.workspaceCopy,
    signal,
  });
  signal.throwIfAborted();
  if (isSuccess(result)) return;
  const message = `the skills in ${from} could not be copied to ${to}`;
  throw taskFailure('harness', message, printedBy(result));
}

const copy = 'exec 2>&1; mkdir -p "$HOME/$2" && cp -R "$1/." "$HOME/$2/"';

interface TimeLeftParts {
  clock: Clock;
  /** The environment of the harness's processes. */
  env: Record<string, string>;
  /** What is left of the budgets of its models. */
  budgetLeft(): BudgetLeft;
}

/**
 * Passes a harness what is left of its time and of the budgets of its models, at the beginning of each turn:
 * in its environment, and by the function that this returns. What is not limited has no variable. A batch's
 * budget is shared: what is left of it may be used by other trials.
 *
 * @param until when the harness is ended, epoch milliseconds
 */
function passTimeLeft(until: number, { clock, env, budgetLeft }: TimeLeftParts): () => TimeLeft {
  const left = (now = clock.now()): TimeLeft => {
    const { until: budgetUntil = until, ...budgets } = budgetLeft();
    return { timeMs: Math.max(0, Math.min(until, budgetUntil) - now), ...budgets };
  };
  const now = clock.now();
  const { timeMs, tokens, usd, requests } = left(now);
  Object.assign(env, {
    OFFSITE_DEADLINE: String(Math.floor((now + timeMs) / 1000)),
    OFFSITE_TIME_LIMIT_SECONDS: String(Math.floor(timeMs / 1000)),
    ...(tokens !== undefined && { OFFSITE_TOKEN_BUDGET: String(Math.floor(tokens)) }),
    ...(usd !== undefined && { OFFSITE_USD_BUDGET: usd.toFixed(4) }),
    ...(requests !== undefined && { OFFSITE_REQUEST_BUDGET: String(requests) }),
  });
  return () => left();
}

/**
 * Answers the harness as the case's simulated user, up to that user's limit of messages. Undefined if the
 * case has no simulated user.
 */
function answererOf({ user }: TrialSpec, models: TrialModels | undefined): Answerer | undefined {
  if (!user || !models) return undefined;
  const { goal, prompt, turns } = user;
  const played = openSimulatedUser({
    goal,
    prompt,
    chat: (request, signal) => models.session.chat('user', request, signal),
  });
  return async (said, signal) => {
    if (said.filter(({ from }) => from === 'user').length >= turns) {
      return { ends: `after ${turns} messages, the limit for this user` };
    }
    const turn = await answered(played.next, said, signal, models.session.overBudget);
    return 'says' in turn ? turn : { ends: `${turn.ends}: ${turn.why}` };
  };
}

type Next = (said: readonly Utterance[], signal: AbortSignal) => Promise<UserTurn>;
type Ending = { ends: string; why: string };

/**
 * Returns the user's answer. If what the harness did prevents an answer, it returns an end of the
 * conversation: the harness's words may be too long for the user's model, or may talk it out of answering. A
 * control decides who caused the failure: the same model is asked with an empty message from the harness. If
 * the control fails too, the user's model is the cause, and the error is thrown. A passing fault of the model
 * does not occur twice with a successful control in between.
 */
async function answered(
  next: Next,
  said: readonly Utterance[],
  signal: AbortSignal,
  overBudget: AbortSignal,
): Promise<UserTurn | Ending> {
  try {
    return await next(said, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof OffsiteError)) throw error;
    // Agent and user share one budget, and the harness has used it up.
    if (overBudget.aborted) return { ends: 'unanswered', why: messageOf(error) };
    const works = await next([...said.slice(0, 1), { from: 'harness', text: '' }], signal).then(
      () => true,
      () => false,
    );
    signal.throwIfAborted();
    // The control itself may exceed the budget.
    if (!works && !overBudget.aborted) throw error;
  }
  try {
    return await next(said, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof OffsiteError)) throw error;
    return {
      ends: 'unanswered',
      why: `the user’s model could not answer what the harness said: ${error.message}`,
    };
  }
}
