import type { Container } from '../../engine/container.ts';
import type { CommandSource, Runner } from '../../harness/runner.ts';
import type { TrialResult } from '../../record/trial-record.ts';
import { mcpObstacle } from '../../suite/planned-variant.ts';
import { asUser } from '../as-user.ts';
import { type Conversation, converse } from '../conversation.ts';
import { harnessEnvironment } from '../environment.ts';
import { TrialFailure } from '../failure.ts';
import { modelAccess, reachThrough } from '../model-access.ts';
import { hostsOf, type TrialModels } from '../models.ts';
import { passTimeLeft } from '../pass-time-left.ts';
import { refuseMissed } from '../replayed.ts';
import { sandboxPaths } from '../sandbox-paths.ts';
import { answererOf } from '../simulated-user.ts';
import { copySkills } from '../skills.ts';
import { endingCause } from './ending-cause.ts';
import type { Phase, PhaseInput } from './phase.ts';

/** Runs the harness and ends all of its processes. */
export const harness: Phase = { name: 'harness', run };

async function run(input: PhaseInput): Promise<Partial<TrialResult>> {
  const { spec, parts, container, port, models, step, signal } = input;
  const runner = parts.runners.find(({ name }) => name === spec.harness);
  if (!runner) {
    throw new TrialFailure({
      kind: 'infrastructure',
      phase: 'harness',
      message: `there is no harness "${spec.harness}"`,
    });
  }
  if (input.whole.steps) await models?.session.reachOnly(hostsOf(spec.sandbox));
  if (port && models) port.routeTo(models.session.handler);
  await port?.relay.ready;
  const { worker, home } = await placeOf(input);
  // What the harness runs is the agent's.
  const agents: Container = {
    ...worker,
    exec: (request) => worker.exec({ ...request, mayEndContainer: true }),
    runScript: (request) => worker.runScript({ ...request, mayEndContainer: true }),
  };
  const { mcpServers = {} } = spec.agent ?? {};
  const deviations = await giveSkills(runner, worker, input);
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
    model: port && models && modelAccess(runner, spec, port.relay, models.session),
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
      ...{ timeoutMs: spec.sandbox.timeouts.harness, signal, stop: AbortSignal.any(stops) },
      passTimeLeft: spec.profile.tellDeadline ? timeLeft : undefined,
    },
    parts.clock,
  );
  await session.end?.();
  signal.throwIfAborted();
  refuseMissed(models?.session);
  // Nothing that the tests of a step start may ask a model.
  if (step.isLast) models?.session.close('the harness has ended');
  else port?.routeTo(undefined);
  // Processes that the harness left behind must not change what is graded.
  await container.killAll(signal);
  // If the sandbox lost the connection to its model, the trial says nothing about the agent, whatever the
  // harness did then.
  port?.relay.lost.throwIfAborted();
  const source = session.commandsFrom ?? (runner.reportsCommands ? 'report' : 'traffic');
  return {
    ...foundOf(conversation, source, input),
    ...(deviations.length > 0 && { deviations }),
    cause: await endingCause(runner, conversation, input),
  };
}

/** The sandbox as the harness's user has it, and a folder for the harness's own files. */
async function placeOf({ spec, container, users, step, signal }: PhaseInput) {
  const home = step.index === 0 ? sandboxPaths.harness : `${sandboxPaths.harness}-${step.index + 1}`;
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
  { spec, step, signal }: PhaseInput,
): Promise<string[]> {
  const from = spec.agent?.skills;
  if (from === undefined) return [];
  if (skillsFolder === undefined)
    return [`the ${name} harness has no folder for skills: it was given only their path, ${from}`];
  try {
    await copySkills(worker, { from, to: skillsFolder }, signal);
  } catch (error) {
    // The agent of an earlier step may have removed them.
    if (step.index === 0 || !(error instanceof TrialFailure)) throw error;
    return [error.message];
  }
  return [];
}

function foundOf(conversation: Conversation, source: CommandSource, { models }: PhaseInput) {
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
): Partial<TrialResult> {
  if (source === 'none') return {};
  const derivedIsCut = source === 'traffic' && models?.derived.isCut === true;
  return {
    trajectory,
    derivedTrajectory: models?.derived.entries(),
    harnessTellsCommands: source === 'report',
    ...((isCut || derivedIsCut) && { commandsCut: true }),
  };
}
