import { OffsiteError } from '../base/offsite-error.ts';
import { receiving } from '../contract/receiving.ts';
import { type RunRecord, Setup } from '../contract/record.ts';
import { agentSandbox, caseSandbox, testsHosts } from '../suite/case-network.ts';
import type { Answer, CaseAgent, CaseSteps, CaseTests } from '../suite/case-tests.ts';
import { type CaseEnvironment, noEnvironment, sandboxIn } from '../suite/environment.ts';
import {
  freshVerify,
  type PlannedCase,
  type PlannedVariant,
  promptOf,
  runDetails,
  type SuitePlan,
} from '../suite/plan.ts';
import { expandVariables } from '../suite/variables.ts';
import { solutionOf } from '../trial/grade/solution.ts';
import type { TrialSpec, TrialSteps } from '../trial/spec.ts';

const ReceivedSetup = receiving(Setup);

/** What a plan says of all its trials. */
export type AskedPlan = Pick<SuitePlan, 'judges' | 'replay' | 'answers'> & {
  suite: Pick<SuitePlan['suite'], 'prompt'>;
};

export interface OwnRun {
  record: Pick<RunRecord, 'id' | 'setup'>;
  taskIndex: number;
  case: PlannedCase;
  variant: PlannedVariant;
  batchId: string;
  /** With the prompt as this agent sent it. */
  plan: AskedPlan;
}

/**
 * What to do in a trial of a run that this agent started. The texts come from the pulled `setup`; what a run
 * record has no field for comes from our own request. If a text comes back exactly as we sent it, the service
 * has not expanded its variables, so we do; any other text is already expanded.
 */
export function ownTrialSpec(run: OwnRun, ordinal: number): TrialSpec {
  const { record, variant, plan } = run;
  const prompt = promptOf(plan) ?? '';
  const { request } = run.case;
  const setup = readSetup(record);
  refuseSource(setup.source?.kind ?? 'empty');
  const { variables, manifest, capture, artifacts, user, ...details } = runDetails(run.case);
  // A plan that an older Offsite stored does not have this field.
  const environment = details.environment ?? noEnvironment;
  const expanded = (pulled: string | undefined | null, sent: string | undefined) =>
    pulled === undefined || pulled === null || pulled === ''
      ? undefined
      : pulled === sent
        ? expandVariables(pulled, variables, 'keep')
        : pulled;
  const testsIn = (environment: CaseEnvironment | undefined) =>
    environment && { environment, sandbox: sandboxIn(variant.sandbox, environment) };
  const sandbox = caseSandbox(sandboxIn(variant.sandbox, environment), details);
  const reached = (tests: CaseTests) => testsHosts(variant.sandbox, tests.network);
  const steps = details.steps && trialSteps(details.steps, { prompt, variables, testsIn, sandbox, reached });
  const [first] = steps?.list ?? [];
  const validator = expanded(setup.validator, request.validator?.source);
  return {
    batchId: run.batchId,
    runId: record.id,
    ordinal,
    caseName: request.name,
    taskIndex: run.taskIndex,
    prompt: first?.prompt ?? expanded(setup.prompt, prompt) ?? '',
    prepare: expanded(setup.prepare, request.prepare?.source),
    verify: expanded(setup.verify, request.verify),
    // A plan that an older Offsite stored does not have this field.
    verifyPlace: details.verifyPlace ?? freshVerify,
    validator:
      validator === undefined
        ? undefined
        : {
            source: validator,
            files: setup.validatorFiles ?? [],
            manifest,
            capture,
            runsIn: details.runsIn,
            onError: details.onError,
          },
    tests: details.tests && withoutNetwork(details.tests),
    ...(details.tests && { testsHosts: reached(details.tests) }),
    steps,
    agent: details.agent && withoutNetwork(details.agent),
    variables: first?.variables ?? variables,
    testsIn: testsIn(details.tests?.fresh?.environment),
    artifacts,
    artifactsExcept: details.artifactsExcept,
    protected: details.protected,
    user:
      user === undefined || variant.userModel === undefined
        ? undefined
        : {
            goal: expandVariables(user.goal, variables, 'keep'),
            prompt: expandVariables(user.prompt, variables, 'keep'),
            model: variant.userModel,
            turns: details.userTurns,
          },
    solution: solutionOf(details, variables),
    judges: plan.judges,
    ...(plan.replay && { replay: plan.replay }),
    model: variant.model,
    modelConfig: variant.modelConfig,
    harness: variant.harness,
    variant: variant.name,
    profile: variant.profile,
    sandbox,
    environment,
    ...((details.answers || plan.answers) && { answers: hiddenFrom(run) }),
    // A row is about the state of its repository at one commit.
    ...(details.tests?.fresh?.brought.kind === 'workspace' && { hidesLaterCommits: true }),
  };
}

/** What no agent of the case may find: its own answers, and those of other cases that it does not give. */
function hiddenFrom({ case: { local }, plan: { answers = [] } }: OwnRun): Answer[] {
  const own = local.answers ?? [];
  const known = new Set([...own.map(({ sha256 }) => sha256), ...(local.given ?? [])]);
  return [...own, ...answers.filter(({ sha256 }) => !known.has(sha256))];
}

/** The part without its network settings: the spec already says what the part may reach. */
function withoutNetwork<Part extends CaseAgent | CaseTests>({ network: _, ...part }: Part) {
  return part;
}

/** Each step has its own instruction, and never sees that of another one. */
function trialSteps(
  steps: CaseSteps,
  {
    prompt,
    variables,
    testsIn,
    sandbox,
    reached,
  }: Pick<TrialSpec, 'prompt' | 'variables' | 'sandbox'> & {
    testsIn(environment: CaseEnvironment | undefined): TrialSpec['testsIn'];
    reached(tests: CaseTests): string[];
  },
): TrialSteps {
  const list = steps.list.map(({ instruction, oracle, ...step }) => {
    const own = { ...variables, instruction };
    const { network, hosts } = agentSandbox(sandbox, step.agent.network);
    return {
      ...step,
      agent: withoutNetwork(step.agent),
      tests: withoutNetwork(step.tests),
      testsHosts: reached(step.tests),
      reach: { network, hosts },
      variables: own,
      prompt: expandVariables(prompt, own, 'keep'),
      solution: solutionOf({ oracle }, own),
      testsIn: testsIn(step.tests.fresh?.environment),
    };
  });
  return { ...steps, list };
}

/** What to do in a trial of a case, as a plan has it, without asking a service. */
export function plannedTrialSpec(
  { suite, judges, answers }: Pick<SuitePlan, 'suite' | 'judges' | 'answers'>,
  {
    case: planned,
    variant,
    id,
    ordinal,
  }: { case: PlannedCase; variant: PlannedVariant; id: string; ordinal: number },
): TrialSpec {
  const { prepare, verify, validator } = planned.request;
  const plan = { suite, judges, answers };
  const setup = {
    prompt: promptOf(plan) ?? '',
    prepare: prepare?.source,
    verify,
    validator: validator?.source,
    validatorFiles: validator?.sourceFiles,
  };
  return ownTrialSpec(
    { record: { id, setup }, taskIndex: 0, case: planned, variant, batchId: id, plan },
    ordinal,
  );
}

/**
 * Checks a setup, because the client passes setups on unchecked. Throws `SETUP_MISSING`, and
 * `SETUP_UNREADABLE` for a setup that is not as documented.
 */
function readSetup({ id, setup }: OwnRun['record']): Setup {
  if (!setup) {
    throw new OffsiteError(`the service gave run ${id} no setup, so there is nothing to run`, {
      code: 'SETUP_MISSING',
      kind: 'infrastructure',
    });
  }
  const read = ReceivedSetup.safeParse(setup);
  if (read.success) return read.data;
  const issues = read.error.issues.map(({ path, message }) => `${path.join('.') || 'all of it'}: ${message}`);
  throw new OffsiteError(`the setup of run ${id} is not as documented: ${issues.join('; ')}`, {
    code: 'SETUP_UNREADABLE',
    kind: 'infrastructure',
    cause: read.error,
  });
}

function refuseSource(kind: string): void {
  if (kind === 'empty') return;
  throw new OffsiteError(`a case's source of kind "${kind}" is not implemented; only "empty" is`, {
    code: 'SOURCE_UNKNOWN',
    kind: 'input',
  });
}
