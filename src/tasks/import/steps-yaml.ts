import { isDeepStrictEqual } from 'node:util';
import type { CaseAgent, CaseStep, CaseSteps } from '../../suite/case-steps.ts';
import type { PlacedFile } from '../../suite/environment.ts';
import { oracleYaml, stepThresholdYaml, testsYaml, thresholdYaml } from './tests-yaml.ts';
import {
  duration,
  given,
  healthcheckYaml,
  NotCarried,
  nonEmpty,
  nonEmptyList,
  refuseOthers,
  type Writing,
  writingIn,
} from './words.ts';

/** What a case says for all of its steps. */
interface CommonParts {
  agent: CaseAgent;
  artifacts: readonly string[];
  artifactsExcept: readonly string[];
}

/** The steps of a case as a suite file says them. Throws {@link NotCarried}. */
export function stepsYaml(
  { list, strategy, thresholds, ...rest }: CaseSteps,
  common: CommonParts,
  writing: Writing,
) {
  refuseOthers(rest, [], 'steps.');
  const overall = given({
    rewards: strategy === 'mean' ? undefined : strategy,
    threshold: thresholdYaml(thresholds),
  });
  return {
    steps: list.map((step, index) => {
      const folder = `${index + 1}-${step.name.replaceAll(/[^\w-]+/g, '_').slice(0, 50)}`;
      return stepYaml(step, common, writingIn(`steps/${folder}`, writing));
    }),
    overall: nonEmpty(overall),
  };
}

function stepYaml(
  {
    name,
    instruction,
    emptied,
    files,
    setup,
    healthcheck,
    agent,
    timeoutMs,
    tests,
    oracle,
    ...step
  }: CaseStep,
  common: CommonParts,
  writing: Writing,
): Record<string, unknown> {
  const { artifacts, artifactsExcept = [], ...rest } = step;
  refuseOthers(rest, [], 'steps.');
  return given({
    name,
    instruction,
    empties: nonEmptyList(emptied),
    folders: files.length > 0 ? { '.': writing.put('workdir', inWorkspace(files)) } : undefined,
    setup,
    healthcheck: healthcheck && healthcheckYaml(healthcheck),
    agent: isDeepStrictEqual(agentYaml(agent), agentYaml(common.agent)) ? undefined : agentYaml(agent),
    timeout: timeoutMs === undefined ? undefined : duration(timeoutMs),
    tests: testsYaml(tests, writing, stepThresholdYaml),
    artifacts: nonEmptyList(beyond(common.artifacts, artifacts)),
    artifactsExcept: nonEmptyList(beyond(common.artifactsExcept, artifactsExcept)),
    solution: oracle && oracleYaml(oracle, writing),
  });
}

/** An agent of a case, or of a step, as a suite file says it. */
export function agentYaml({ network, ...agent }: CaseAgent): Record<string, unknown> {
  refuseOthers(agent, ['user', 'mcpServers', 'skills'], 'agent.');
  return given({ ...agent, hosts: network?.hosts });
}

function inWorkspace(files: PlacedFile[]): PlacedFile[] {
  const outside = files.find(({ path }) => path.startsWith('/'));
  if (outside) throw new NotCarried(`a step puts a file at ${outside.path}`);
  return files;
}

/** What a step has in addition to the case. In `all`, the case's own come first. */
function beyond(common: readonly string[], all: readonly string[]): readonly string[] {
  if (!isDeepStrictEqual(all.slice(0, common.length), [...common]))
    throw new NotCarried('a step keeps other artifacts than its case');
  return all.slice(common.length);
}
