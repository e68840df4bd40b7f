import { posix } from 'node:path';
import { instructionOf } from '../../suite/case-steps.ts';
import type { PlacedFile } from '../../suite/environment.ts';
import type { PlannedCase } from '../../suite/plan.ts';
import { environmentYaml } from './environment-yaml.ts';
import { agentYaml, stepsYaml } from './steps-yaml.ts';
import { oracleYaml, testsYaml } from './tests-yaml.ts';
import { given, NotCarried, nonEmpty, nonEmptyList, refuseOthers, type Writing } from './words.ts';

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
