import { posix } from 'node:path';
import { OffsiteError } from '../../base/offsite-error.ts';
import type { NewEntry } from '../../engine/archive/entries.ts';
import type { Container } from '../../engine/container.ts';
import { howItEnded, isSuccess, printedBy } from '../../engine/exec/exec-request.ts';
import type { Cause } from '../../record/cause.ts';
import { type Blamed, causeOf, type Fault, settle, TrialFailure, taskFailure } from '../blame.ts';
import { emptyFolder, foldersAbove } from '../grade/bring-workspace.ts';
import { inSolved, inUntouched } from '../grade/grade.ts';
import type { Phase, TrialSandbox } from '../phase.ts';
import { gradingEnvironment, sandboxPaths } from '../prepare/environment.ts';
import { asUser, requireHealth, startProgram } from '../prepare/started-sandbox.ts';
import { agentWhoLeft } from '../run/ending-cause.ts';
import type { TrialSpec, TrialStep } from '../spec.ts';

/**
 * Makes the sandbox ready for a step: puts its files, runs its setup and waits for its healthcheck. Nothing
 * may run in the sandbox when this phase begins.
 *
 * A step after the first one begins with what the agent left. If it cannot begin, it is tried in sandboxes
 * without an agent too, as a grading without a verdict is: a setup may always fail.
 */
export function beginStep(step: TrialStep): Phase {
  return {
    name: 'sandbox',
    async run(spec, sandbox) {
      if (sandbox.step === 0) {
        await begin(step, spec, sandbox);
        return {};
      }
      const { solve } = sandbox;
      const again = () => begun(step, spec, sandbox);
      const look = (at: TrialSandbox) => begun(step, spec, at);
      const { graded, blamed } = await settle<Begun>(await again(), await agentWhoLeft(spec, sandbox), {
        again,
        untouched: () => inUntouched(spec, sandbox, look),
        solved: solve && (() => inSolved(spec, sandbox, solve, look)),
        askJudge: async () => 'answers',
      });
      if (blamed && graded.fault) throw failureOf(step, graded, blamed);
      return {};
    },
  };
}

interface Begun {
  fault: Fault | undefined;
  error?: OffsiteError;
}

async function begun(step: TrialStep, spec: TrialSpec, sandbox: TrialSandbox): Promise<Begun> {
  try {
    await begin(step, spec, sandbox);
    return { fault: undefined };
  } catch (error) {
    sandbox.signal.throwIfAborted();
    if (!(error instanceof OffsiteError)) throw error;
    const from = causeOf(error, 'sandbox').kind === 'task' ? 'checks' : 'machine';
    return { fault: { from, name: error.code }, error };
  }
}

function failureOf(step: TrialStep, { error }: Begun, { blame, why }: Blamed<Begun>): TrialFailure {
  const { message, output } = causeOf(error, 'sandbox');
  const fails = (kind: Cause['kind'], text: string) =>
    new TrialFailure({ kind, phase: 'sandbox', message: text, output }, error);
  switch (blame) {
    case 'agent':
      return fails('agent', `step ${step.name} cannot begin in what the agent left: ${message}`);
    case 'suite':
      return fails('task', `step ${step.name} cannot begin: ${message}`);
    case 'machine':
      return fails('infrastructure', `step ${step.name} cannot begin: ${message}`);
    default:
      return fails(
        'unknown',
        `step ${step.name} cannot begin: ${message}; it is not known whose fault that is: ${why}`,
      );
  }
}

/**
 * Puts the files of these steps into an untouched sandbox and runs their setups, without any work of an
 * agent. A setup may fail because it needs such work; its failure is ignored.
 *
 * @param work called after each step's setup, to do what an agent would do
 */
export async function reachSteps(
  steps: readonly TrialStep[],
  container: Container,
  spec: TrialSpec,
  { users, signal }: Pick<TrialSandbox, 'users' | 'signal'>,
  work?: (step: TrialStep) => Promise<void>,
): Promise<void> {
  for (const step of steps) {
    const user = step.agent.user === undefined ? undefined : users.get(step.agent.user);
    await putStep(step, container, user, signal);
    const worker = user ? asUser(container, user) : container;
    try {
      await runSetup(step, worker, spec.sandbox.timeouts.prepare, signal);
    } catch (error) {
      if (!(error instanceof TrialFailure)) throw error;
    }
    await work?.(step);
  }
  await container.killAll(signal);
}

async function begin(
  step: TrialStep,
  spec: TrialSpec,
  { step: index, container, users, parts, startUp, signal }: TrialSandbox,
): Promise<void> {
  // The program ended with the processes of the step before.
  if (index > 0) await startProgram(container, startUp, spec, signal);
  const user = step.agent.user === undefined ? undefined : users.get(step.agent.user);
  await putStep(step, container, user, signal);
  const worker = user ? asUser(container, user) : container;
  await runSetup(step, worker, spec.sandbox.timeouts.prepare, signal);
  const { healthcheck } = step;
  const environment = { ...spec.environment, healthcheck };
  await requireHealth(worker, { ...spec, environment }, parts.clock, signal);
}

/** Puts the files of a step into a sandbox, and its prompt. The engine does it, without any program there. */
async function putStep(
  { files, emptied, prompt }: Pick<TrialStep, 'files' | 'emptied' | 'prompt'>,
  container: Container,
  owner: { uid: number; gid: number } | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { workingDir } = container;
  if ((await container.kindOf(workingDir, signal)) === 'other')
    throw taskFailure('sandbox', `${workingDir} is not a folder`);
  const placed = files.map((file) => ({ ...file, path: posix.resolve(workingDir, file.path) }));
  const around = placed.flatMap(({ path }) => foldersAbove(path));
  const inside = around.filter((path) => path.startsWith(`${workingDir}/`)).toSorted();
  /** A folder replaces a file or a link in its place. */
  const missing = async (paths: readonly string[]) => {
    const folders: NewEntry[] = [];
    for (const path of new Set(paths))
      if ((await container.kindOf(path, signal)) !== 'folder') folders.push({ path, folder: true });
    return folders;
  };
  const folders = await missing([workingDir, sandboxPaths.own, ...inside]);
  // An agent may have put a link in the path of a folder that is emptied. Then another folder would be
  // emptied.
  const above = await missing(emptied.flatMap(foldersAbove));
  const { uid = 0, gid = 0 } = owner ?? {};
  await container.put(
    [
      ...above,
      ...emptied.flatMap(emptyFolder),
      ...[...folders, ...placed].map((entry) => ({ ...entry, uid, gid })),
      { path: sandboxPaths.prompt, content: prompt },
    ],
    '/',
    signal,
  );
}

async function runSetup(
  { setup, variables }: TrialStep,
  container: Container,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<void> {
  if (setup === undefined) return;
  const result = await container.exec({
    argv: ['/bin/sh', '-c', 'exec bash "$0" 2>&1 < /dev/null', posix.resolve(container.workingDir, setup)],
    env: gradingEnvironment(variables, container),
    timeoutMs,
    signal,
  });
  signal.throwIfAborted();
  if (isSuccess(result)) return;
  const message = `${setup} ${howItEnded(result, timeoutMs)}`;
  throw taskFailure('sandbox', message, printedBy(result));
}
