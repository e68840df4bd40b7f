import { randomBytes } from 'node:crypto';
import type { Validation } from '../../contract/validation.ts';
import type { Container } from '../../engine/container.ts';
import type { Cause } from '../../record/cause.ts';
import { commandsOf } from '../../record/timeline.ts';
import { agentUsage } from '../../record/usage.ts';
import type { Sandbox } from '../../suite/plan.ts';
import { variablesAsEnvironment } from '../../suite/variables.ts';
import { runValidator } from '../../validate/validator.ts';
import type { GradingFailure, ValidatorRun } from '../../validate/validator-request.ts';
import { type IntegrityFinding, integrityValidation, verdictOf } from '../../validate/verify.ts';
import type { WorkSandbox } from '../../validate/work/work.ts';
import { copyWorkspace } from '../../validate/workspace-copy.ts';
import { largestWorkspace, protectedBefore } from '../collect/collect.ts';
import { leftOutOf, protectedState, protectionOf, shownPaths } from '../collect/system-changes.ts';
import type { OpenRecord, Phase, TrialSandbox } from '../phase.ts';
import { gradingEnvironment, sandboxPaths } from '../prepare/environment.ts';
import type { StartedSandbox } from '../prepare/started-sandbox.ts';
import type { TrialSpec, ValidatorSpec } from '../spec.ts';
import { type Tested, tested } from './tests.ts';

/** Runs the case's validator and its tests, adds the integrity findings, and decides the verdict. */
export const validate: Phase = { name: 'validate', run };

async function run(spec: TrialSpec, sandbox: TrialSandbox, found: OpenRecord): Promise<OpenRecord> {
  const { validator } = spec;
  const ran = await checked(spec, sandbox, found);
  const changed = await changedMeanwhile(ran, spec, sandbox, found);
  const protectedChanged = [...(found.protectedChanged ?? []), ...changed];
  const findings = integrityOf(spec, { ...found, protectedChanged });
  const at = sandbox.parts.clock.now();
  const systemChanges = 'systemChanges' in ran ? { systemChanges: ran.systemChanges } : {};
  const leftOut = 'leftOut' in ran && ran.leftOut ? ran.leftOut : [];
  const artifactsOmitted = [...new Set([...(found.artifactsOmitted ?? []), ...leftOut])];
  const own = ran.kind === 'ran' ? ran.validations : [];
  const validations = [...own, ...withIndexes(findings, own, at)];
  const judgments = ran.kind === 'ran' ? ran.judgments : [];
  const ofTests = spec.tests && (spec.tests.fresh ? ('fresh' as const) : ('same' as const));
  const validatedIn = ofTests ?? validator?.runsIn;
  const graded = {
    validations,
    judgments,
    artifactsOmitted,
    ...(validatedIn && { validatedIn }),
    ...systemChanges,
    ...('testsConnections' in ran && { testsConnections: ran.testsConnections }),
  };

  // The trial has failed, whatever else grading found, because something that grading relies on was changed.
  if (findings.some(({ problem }) => problem !== undefined)) return { ...graded, verdict: 'failed' };
  if (ran.kind === 'refused') {
    return { ...graded, verdict: 'void', cause: gradingCause(ran.why) };
  }
  if (ran.failure) return { ...graded, ...failedGrading(found, validator?.onError ?? 'void', ran.failure) };
  const verdict = verdictOf({ verifySteps: found.verifySteps ?? [], ...graded });
  if (verdict !== 'void') return { ...graded, verdict };
  return { ...graded, verdict, cause: { ...gradingCause('there was nothing to check'), kind: 'task' } };
}

async function checked(
  spec: TrialSpec,
  sandbox: TrialSandbox,
  found: OpenRecord,
): Promise<Validated | Tested> {
  const { tests, validator } = spec;
  if (!validator) return tests ? tested(tests, spec, sandbox, found) : { kind: 'ran', ...nothing };
  // Before the tests, because these may change what the agent left.
  const first = await validated(validator, spec, sandbox, found);
  if (!tests || first.kind === 'refused' || first.failure) return first;
  const then = await tested(tests, spec, sandbox, found);
  if (then.kind === 'refused') return then;
  const next = Math.max(-1, ...first.validations.map(({ index }) => index)) + 1;
  const moved = then.validations.map((one) => ({ ...one, index: next, id: `validation-${next}` }));
  return {
    ...then,
    validations: [...first.validations, ...moved],
    judgments: [...first.judgments, ...then.judgments],
  };
}

/** Protected files that the work changed while the validator ran it: later checks read the changed files. */
async function changedMeanwhile(
  ran: { kind: string },
  spec: TrialSpec,
  sandbox: TrialSandbox,
  found: OpenRecord,
): Promise<string[]> {
  const { graders, signal } = sandbox;
  if (!spec.validator || spec.protected.length === 0 || ran.kind !== 'ran') return [];
  if ((found.protectedChanged ?? []).length > 0) return [];
  const before = await protectedBefore(spec, sandbox, signal);
  const fresh = await graders.validator.container();
  const maxBytes = (await largestWorkspace(spec, sandbox, found)) + spec.sandbox.disk;
  const after = await protectedState(fresh, protectionOf(spec), maxBytes, signal);
  // Modes were changed for the two users, so they do not count. Neither do files that tools add.
  return [...before].flatMap(([path, was]) => {
    const is = after.get(path);
    const same = is?.type === was.type && is.sha256 === was.sha256 && is.linkTarget === was.linkTarget;
    return same ? [] : [path];
  });
}

const nothing = { validations: [], judgments: [], failure: undefined };

function withIndexes(
  findings: readonly IntegrityFinding[],
  own: readonly Validation[],
  at: number,
): Validation[] {
  const next = Math.max(-1, ...own.map(({ index }) => index)) + 1;
  return findings.map((finding, position) => integrityValidation(finding, { index: next + position, at }));
}

/** The verdict and cause of a trial whose validator or tests did not complete. */
function failedGrading(
  found: OpenRecord,
  onError: ValidatorSpec['onError'],
  { kind: _, ask, isWrong, ...details }: GradingFailure,
): Pick<OpenRecord, 'verdict' | 'cause' | 'failedAsk'> {
  const cause: Cause = { kind: 'grading', phase: 'validate', ...details };
  // A model that does not answer is not the agent's failure, whatever `onError` says.
  if (ask && !isWrong) return { verdict: 'void', cause: { ...cause, kind: 'model' }, failedAsk: ask };
  if (onError === 'failed') return { verdict: 'failed', cause: found.cause ?? cause };
  return { verdict: 'void', cause, ...(ask && { failedAsk: ask }) };
}

function gradingCause(message: string): Cause {
  return { kind: 'grading', phase: 'validate', message };
}

/** Checks that nothing changed the files and the system that the case or its grading rely on. */
function integrityOf(spec: TrialSpec, found: OpenRecord): IntegrityFinding[] {
  const findings: IntegrityFinding[] = [];
  if (spec.protected.length > 0) {
    const changed = found.protectedChanged ?? [];
    const problem =
      changed.length === 0 ? undefined : `files that the case protects were changed: ${shownPaths(changed)}`;
    findings.push({ kind: 'protected', name: 'protected files', problem });
  }
  if (found.verifyTampered) {
    const { paths } = found.systemChanges?.unexpected ?? { paths: [] };
    const problem =
      found.verifiedIn === 'same'
        ? `the work changed the system that grades it: ${shownPaths(paths)}; if a change is allowed, add ` +
          'it to "keep" or "ignore" of verify'
        : `the work changed the system while verify ran it: ${shownPaths(paths)}; if a change is allowed, ` +
          'add it to "keep" of verify';
    findings.push({ kind: 'tampering', name: 'the system under verify', problem });
  }
  return findings;
}

/** `refused`: the harness left no workspace that could be copied for the validator. */
type Validated = ({ kind: 'ran' } & ValidatorRun) | { kind: 'refused'; why: string };

/**
 * Runs the case's validator in a sandbox in which no harness ran, with a copy of the workspace. The work runs
 * there too, or in the harness's own sandbox if the author sets `runsIn: same`.
 */
async function validated(
  validator: ValidatorSpec,
  spec: TrialSpec,
  agents: TrialSandbox,
  found: OpenRecord,
): Promise<Validated> {
  const { container, graders, signal } = agents;
  const { container: own, closedEnv, validatorNode: node } = await graders.validator.sandbox();
  const copied = await copyWorkspace(container, own, {
    maxBytes: (await agents.prepared()).bytes + spec.sandbox.disk,
    carry: found.carry,
    packed: found.packed,
    leftOut: leftOutOf(spec),
    signal,
  });
  if (copied.kind === 'refused') return { kind: 'refused', why: `the workspace ${copied.why}` };
  // The copied workspace does not count as written by the validator.
  await own.forgiveDisk(signal);
  const work: WorkSandbox =
    validator.runsIn === 'same' ? { kind: 'apart', container } : inOwnSandbox(own, spec.sandbox);
  return { kind: 'ran', ...(await runIn(own, validator, spec, agents, found, { closedEnv, node, work })) };
}

/**
 * A strict sandbox has no root that could give the workspace to another user, so there the work runs as the
 * sandbox's own user.
 */
function inOwnSandbox(container: Container, { security, user }: Sandbox): WorkSandbox {
  const own = security === 'strict' && user !== undefined;
  return { kind: 'beside', container, user: own ? { own: user } : 'nobody' };
}

/** Runs the validator in a sandbox that holds the graded workspace. */
async function runIn(
  container: Container,
  { runsIn, onError, ...validator }: ValidatorSpec,
  spec: TrialSpec,
  { parts, models, signal }: TrialSandbox,
  found: OpenRecord,
  {
    closedEnv,
    node,
    work,
  }: Pick<StartedSandbox, 'closedEnv'> & { node: string | undefined; work: WorkSandbox },
): Promise<ValidatorRun> {
  // In a later grading, the account of the models is in the record of the trial.
  const account = found.models ?? (await models?.session.account());
  const { variables, gradingVariables = variables } = spec;
  return runValidator({
    container,
    ...validator,
    // A random name, so that the harness cannot have put anything there beforehand, such as a package with a
    // name that the validator imports.
    folder: `${sandboxPaths.validators}/${randomBytes(8).toString('hex')}`,
    workspace: container.workingDir,
    ...(node !== undefined && { node }),
    // The validator must not run or load what the agent put into the workspace.
    env: { ...gradingEnvironment(gradingVariables, container), ...closedEnv },
    variables: variablesAsEnvironment(gradingVariables),
    trajectory: commandsOf(found) ?? [],
    finalMessage: found.finalMessage,
    usage: account && agentUsage(account),
    filesChanged: found.filesChanged,
    work,
    judge:
      models && spec.judges.length > 0
        ? (request, stop) => models.session.chat('judge', request, stop)
        : undefined,
    clock: parts.clock,
    timeoutMs: spec.sandbox.timeouts.validator,
    signal,
  });
}
