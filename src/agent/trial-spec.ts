import type { Setup } from '../contract/record.ts';
import type { StoredTrial } from '../ledger/trial-rows.ts';
import { agentSandbox, caseSandbox, testsHosts } from '../suite/case-network.ts';
import type { Answer, CaseAgent, CaseSteps, CaseTests } from '../suite/case-tests.ts';
import { type CaseEnvironment, noEnvironment, sandboxIn } from '../suite/environment.ts';
import { freshVerify, promptOf, type SuitePlan } from '../suite/plan.ts';
import { expandVariables, referencesIn, type Variables } from '../suite/variables.ts';
import { solutionOf, type TrialSpec, type TrialSteps } from '../trial/spec.ts';
import type { Run } from './batch-run.ts';

/** What a plan says of all its trials. */
type AskedPlan = Pick<SuitePlan, 'judges' | 'replay' | 'answers'> & {
  suite: Pick<SuitePlan['suite'], 'prompt'>;
};

/**
 * What to do in a trial of a run. Its texts come from the pulled setup, or from the plan if no service was
 * asked; what a setup has no field for comes from the plan.
 */
export function trialSpec(
  plan: AskedPlan,
  { case: planned, variant, taskIndex = 0 }: Pick<Run, 'case' | 'variant'> & { taskIndex?: number },
  { batchId, runId, ordinal }: Pick<StoredTrial, 'batchId' | 'runId' | 'ordinal'>,
  pulled?: Setup,
): TrialSpec {
  const prompt = promptOf(plan) ?? '';
  const { request, local: details } = planned;
  const { validator: checks, variables = {}, user } = request;
  const sent: Setup = {
    prompt,
    prepare: request.prepare?.source,
    verify: request.verify,
    validator: checks?.source,
    validatorFiles: checks?.sourceFiles,
  };
  const setup = pulled ?? sent;
  const expanded = (text: 'prompt' | 'prepare' | 'verify' | 'validator') =>
    setup[text] ? expandedText(setup[text], sent[text] ?? '', variables) : undefined;
  // A plan that an older Offsite stored does not have this field.
  const environment = details.environment ?? noEnvironment;
  const testsIn = (environment: CaseEnvironment | undefined) =>
    environment && { environment, sandbox: sandboxIn(variant.sandbox, environment) };
  const sandbox = caseSandbox(sandboxIn(variant.sandbox, environment), details);
  const reached = (tests: CaseTests) => testsHosts(variant.sandbox, tests.network);
  const steps = details.steps && trialSteps(details.steps, { prompt, variables, testsIn, sandbox, reached });
  const [first] = steps?.list ?? [];
  const validator = expanded('validator');
  return {
    batchId,
    runId,
    ordinal,
    caseName: request.name,
    taskIndex,
    prompt: first?.prompt ?? expanded('prompt') ?? '',
    prepare: expanded('prepare'),
    verify: expanded('verify'),
    // A plan that an older Offsite stored does not have this field.
    verifyPlace: details.verifyPlace ?? freshVerify,
    validator:
      validator === undefined
        ? undefined
        : {
            source: validator,
            files: setup.validatorFiles ?? [],
            manifest: checks?.manifest ?? [],
            capture: checks?.capture ?? true,
            runsIn: details.runsIn,
            onError: details.onError,
          },
    tests: details.tests && withoutNetwork(details.tests),
    ...(details.tests && { testsHosts: reached(details.tests) }),
    steps,
    agent: details.agent && withoutNetwork(details.agent),
    variables: first?.variables ?? variables,
    testsIn: testsIn(details.tests?.fresh?.environment),
    artifacts: details.artifacts,
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
    ...((details.answers || plan.answers) && { answers: hiddenFrom(details, plan) }),
    // A row is about the state of its repository at one commit.
    ...(details.tests?.fresh?.brought.kind === 'workspace' && { hidesLaterCommits: true }),
  };
}

/**
 * A pulled text with its variables expanded. Services differ in whether they expand them. A text that is our
 * own expansion is done; one that still names what we sent, in the same order, is not.
 */
function expandedText(pulled: string, sent: string, variables: Variables): string {
  const expanded = expandVariables(sent, variables, 'keep');
  const isDone = pulled === expanded || referencesIn(pulled) !== referencesIn(sent);
  return isDone ? pulled : expandVariables(pulled, variables, 'keep');
}

/** What no agent of the case may find: its own answers, and those of other cases that it does not give. */
function hiddenFrom(
  { answers: own = [], given = [] }: Run['case']['local'],
  { answers = [] }: AskedPlan,
): Answer[] {
  const known = new Set([...own.map(({ sha256 }) => sha256), ...given]);
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
