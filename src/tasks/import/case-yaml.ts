import { posix } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type CaseAgent, type CaseStep, type CaseSteps, instructionOf } from '../../suite/case-steps.ts';
import type { PlacedFile } from '../../suite/environment.ts';
import type { PlannedCase } from '../../suite/plan.ts';
import { environmentYaml } from './environment-yaml.ts';
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

/** A case as a suite file says it, and the files beside the suite that it needs. */
export interface ImportedCase {
  /** Keys of a case of a suite file. */
  yaml: Record<string, unknown>;
  /** What is put into the case's folder, under these names. */
  files: { folder: string; entries: PlacedFile[] }[];
  /** Folders of the host that are copied whole, as contexts of builds. */
  contexts: { from: string; to: string }[];
}

/** Settings of a case that tasks do not have. They have their usual values. */
const usual = ['protected', 'runsIn', 'verifyPlace', 'onError', 'userTurns', 'solution'];

/**
 * A planned case as a part of a suite file. Throws {@link NotCarried} for a case with something that is not
 * written: nothing is left out silently.
 *
 * @param folder the case's folder, relative to the suite
 * @param shared folders of the host that are written once for all cases, and where, relative to the suite
 */
export function caseYaml(
  { request, local }: PlannedCase,
  folder: string,
  shared: ReadonlyMap<string, string>,
): ImportedCase {
  refuseOthers(request, ['id', 'name', 'tags', 'variables'], '');
  const { artifacts, artifactsExcept = [], environment, agent = {}, tests, oracle, steps } = local;
  const known = [
    'artifacts',
    'artifactsExcept',
    'environment',
    'agent',
    'tests',
    'oracle',
    'steps',
    'answers',
  ];
  refuseOthers(local, [...known, ...usual], '');
  const files: ImportedCase['files'] = [];
  const contexts: ImportedCase['contexts'] = [];
  const writing: Writing = {
    put(name, entries) {
      files.push({ folder: name, entries });
      return posix.join(folder, name);
    },
    copy(from, to) {
      const known = shared.get(from);
      if (known !== undefined) return known;
      contexts.push({ from, to });
      return posix.join(folder, to);
    },
  };
  const { id, name, tags } = request;
  return {
    yaml: given({
      id,
      name: name === id ? undefined : name,
      tags,
      variables: variablesYaml({ request, local }),
      environment: environmentYaml(environment, writing),
      tests: tests && testsYaml(tests, writing),
      ...(steps && stepsYaml(steps, { agent, artifacts, artifactsExcept }, writing)),
      solution: oracle && oracleYaml(oracle, writing),
      agent: nonEmpty(agentYaml(agent)),
      artifacts: nonEmptyList(artifacts),
      artifactsExcept: nonEmptyList(artifactsExcept),
    }),
    files,
    contexts,
  };
}

/** The variables without the instruction if the case has steps, because each step has its own. */
function variablesYaml({ request: { variables = {} }, local: { steps } }: PlannedCase) {
  if (!steps) return nonEmpty(variables);
  const { instruction, ...others } = variables;
  if (instruction !== instructionOf(steps.list))
    throw new NotCarried('its instruction is not that of its steps');
  return nonEmpty(others);
}

/** What a case says for all of its steps. */
interface CommonParts {
  agent: CaseAgent;
  artifacts: readonly string[];
  artifactsExcept: readonly string[];
}

/** The steps of a case as a suite file says them. Throws {@link NotCarried}. */
function stepsYaml(
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
function agentYaml({ network, ...agent }: CaseAgent): Record<string, unknown> {
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
