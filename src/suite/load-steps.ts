import { posix } from 'node:path';
import type { AgentSource } from './agent-source.ts';
import type { CaseAgent, CaseStep, CaseSteps } from './case-steps.ts';
import { thresholdsOf } from './case-tests.ts';
import { type CasePart, placedFiles, plannedOracle, plannedTests } from './load-tests.ts';
import type { CombinedSteps, StepSource } from './steps-source.ts';
import type { Path, SuiteReader } from './suite-reader.ts';

/** What the steps of a case have in common. */
interface CommonParts {
  agent: CaseAgent | undefined;
  artifacts: readonly string[];
  artifactsExcept: readonly string[];
}

/** The steps of a case with their files. What is wrong with them is reported. */
export function plannedSteps(
  steps: readonly StepSource[],
  { rewards, threshold }: CombinedSteps,
  common: CommonParts,
  part: CasePart,
): CaseSteps {
  const path = [...part.path, 'steps'];
  part.reader.refuseRepeated(
    path,
    steps.map(({ name }) => name),
    'name',
  );
  return {
    list: steps.map((step, index) => plannedStep(step, common, { ...part, path: [...path, index] })),
    strategy: rewards,
    thresholds: thresholdsOf(threshold),
  };
}

function plannedStep(step: StepSource, common: CommonParts, part: CasePart): CaseStep {
  const { path, reader } = part;
  const { name, instruction, folders = {}, files = {}, empties = [], setup, solution, tests } = step;
  const { healthcheck, agent, timeout, artifacts = [], artifactsExcept = [] } = step;
  const placed = placedFiles({ folders, files }, part);
  if (setup !== undefined && !placed.some((file) => posix.normalize(file.path) === posix.normalize(setup)))
    reader.report([...path, 'setup'], 'is none of the files of this step');
  const except = [...common.artifactsExcept, ...artifactsExcept];
  return {
    name,
    instruction: reader.text(instruction, [...path, 'instruction']),
    ...{ files: placed, emptied: empties, setup, healthcheck },
    agent: agent ? agentOf(agent, [...path, 'agent'], reader) : (common.agent ?? {}),
    timeoutMs: timeout,
    tests: {
      ...plannedTests(tests, { ...part, path: [...path, 'tests'] }),
      thresholds: { byName: tests.threshold, required: true },
    },
    artifacts: [...common.artifacts, ...artifacts],
    ...(except.length > 0 && { artifactsExcept: except }),
    ...(solution && { oracle: plannedOracle(solution, { ...part, path: [...path, 'solution'] }) }),
  };
}

/** What a case, or one of its steps, says about its agent. */
export function agentOf({ hosts, ...agent }: AgentSource, path: Path, reader: SuiteReader): CaseAgent {
  return { ...agent, ...(hosts && { network: { hosts, at: reader.issueAt([...path, 'hosts']) } }) };
}
