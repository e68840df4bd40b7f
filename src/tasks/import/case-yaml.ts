import { posix } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type CaseAgent, type CaseStep, type CaseSteps, instructionOf } from '../../suite/case-steps.ts';
import type { CaseOracle, CaseTests, FreshTests, TestReading, Thresholds } from '../../suite/case-tests.ts';
import type { PlacedFile } from '../../suite/environment.ts';
import type { PlannedCase } from '../../suite/plan.ts';
import { environmentYaml } from './environment-yaml.ts';
import {
  duration,
  fileYaml,
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

/** How many names of tests, and how many characters of them, stand in the suite itself. */
const inline = { names: 10, characters: 1000 };

/** The tests of a case, or of a step, as a suite file says them. Throws {@link NotCarried}. */
function testsYaml(
  tests: CaseTests,
  writing: Writing,
  thresholds: (given: Thresholds) => unknown = thresholdYaml,
): Record<string, unknown> {
  const { files, emptied, command, env, user, timeoutMs, reading, collect = [], network, fresh } = tests;
  const known = ['files', 'emptied', 'command', 'env', 'user', 'timeoutMs', 'reading', 'thresholds'];
  refuseOthers(tests, [...known, 'collect', 'network', 'fresh'], 'tests.');
  return given({
    ...(fresh && freshYaml(fresh, emptied, writing)),
    folders: foldersYaml(files, emptied, 'tests', writing),
    command,
    env: nonEmpty(env),
    user,
    timeout: duration(timeoutMs),
    collect: nonEmptyList(
      collect.map(({ timeoutMs, ...each }) => given({ ...each, timeout: duration(timeoutMs) })),
    ),
    ...readingYaml(reading, writing),
    hosts: network?.hosts,
    threshold: thresholds(tests.thresholds),
  });
}

function freshYaml({ environment, brought }: FreshTests, emptied: string[], writing: Writing) {
  const own = environment && environmentYaml(environment, writingIn('verifier', writing));
  const place = { in: 'fresh', environment: own };
  if (brought.kind === 'artifacts') {
    const brings = brought.artifacts.map(({ path, exclude }) =>
      exclude.length === 0 ? path : { path, except: exclude },
    );
    const isUsual = isDeepStrictEqual(brought.sealed, emptied);
    return { ...place, brings, sealed: isUsual ? undefined : brought.sealed };
  }
  const { testPatch, base, restored } = brought;
  const patch = { source: fileYaml('tests.patch', testPatch, writing), base };
  return { ...place, brings: 'workspace', patch, restored: nonEmptyList(restored) };
}

function readingYaml(reading: TestReading, writing: Writing): Record<string, unknown> {
  switch (reading.kind) {
    case 'reward-files':
      return { rewards: { json: reading.json, text: reading.text } };
    case 'printed-tests':
      return { prints: reading.parser };
    case 'named-tests': {
      const { parser, report, failToPass, passToPass } = reading;
      const names = (list: string[], file: string) =>
        list.length <= inline.names && list.join('').length <= inline.characters
          ? list
          : fileYaml(file, `${JSON.stringify(list, undefined, 2)}\n`, writing);
      return {
        named: given({
          parser,
          report,
          failToPass: names(failToPass, 'fail-to-pass.json'),
          passToPass: passToPass.length > 0 ? names(passToPass, 'pass-to-pass.json') : undefined,
        }),
      };
    }
  }
}

function oracleYaml(oracle: CaseOracle, writing: Writing): Record<string, unknown> {
  const { files, command, env } = oracle;
  refuseOthers(oracle, ['files', 'command', 'env'], 'solution.');
  const tops = files.map(({ path }) => `/${path.split('/')[1]}`);
  return given({ command, folders: foldersYaml(files, tops, 'solution', writing), env: nonEmpty(env) });
}

/** Each folder of the sandbox with the folder of the case that has its files. */
function foldersYaml(
  files: readonly PlacedFile[],
  roots: readonly string[],
  name: string,
  { put }: Writing,
): Record<string, string> | undefined {
  const distinct = [...new Set(roots)];
  const folders: Record<string, string> = {};
  const left = new Set(files);
  for (const root of distinct) {
    const below = files.filter((file) => left.has(file) && file.path.startsWith(`${root}/`));
    if (below.length === 0) continue;
    for (const file of below) left.delete(file);
    const entries = below.map((file) => ({ ...file, path: file.path.slice(root.length + 1) }));
    const count = Object.keys(folders).length + 1;
    folders[root] = put(count === 1 ? name : `${name}-${count}`, entries);
  }
  const [other] = left;
  if (other) throw new NotCarried(`it puts a file at ${other.path}`);
  return nonEmpty(folders);
}

/** What the rewards of a trial must reach. */
function thresholdYaml({ default: usualThreshold, byName, required }: Thresholds): unknown {
  if (required || usualThreshold === undefined) throw new NotCarried('its thresholds are those of a step');
  const names = nonEmpty(byName);
  if (names && usualThreshold !== 1)
    throw new NotCarried('its thresholds are by name, with a default other than 1');
  return names ?? (usualThreshold === 1 ? undefined : usualThreshold);
}

/** What the rewards of a step must reach for the next one to run. */
function stepThresholdYaml({ default: usual, byName, required }: Thresholds): unknown {
  if (!required || usual !== undefined) throw new NotCarried('the thresholds of a step are those of a trial');
  return nonEmpty(byName);
}
