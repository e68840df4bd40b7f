import { posix } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type CaseAgent, type CaseStep, type CaseSteps, instructionOf } from '../../suite/case-steps.ts';
import type { CaseOracle, CaseTests, FreshTests, TestReading, Thresholds } from '../../suite/case-tests.ts';
import type { PlacedFile } from '../../suite/environment.ts';
import type { PlannedCase } from '../../suite/plan.ts';
import { environmentYaml } from './environment-yaml.ts';
import { asWritten, fileYaml, NotCarried, type Writing, writingIn } from './words.ts';

/** A case as a suite file says it, and the files beside the suite that it needs. */
export interface ImportedCase {
  /** Keys of a case of a suite file. */
  yaml: Record<string, unknown>;
  /** What is put into the case's folder, under these names. */
  files: { folder: string; entries: PlacedFile[] }[];
  /** Folders of the host that are copied whole, as contexts of builds. */
  contexts: { from: string; to: string }[];
}

/**
 * A planned case as a part of a suite file. Throws {@link NotCarried} for a case with something that is not
 * written: nothing is left out silently. What a suite has no key for, its schema refuses.
 *
 * @param folder the case's folder, relative to the suite
 * @param shared folders of the host that are written once for all cases, and where, relative to the suite
 */
export function caseYaml(
  { request, local }: PlannedCase,
  folder: string,
  shared: ReadonlyMap<string, string>,
): ImportedCase {
  const { artifacts, artifactsExcept = [], environment, agent = {}, tests, oracle, steps } = local;
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
  const { id, name, ...asked } = request;
  const yaml = asWritten({
    id,
    name: name === id ? undefined : name,
    ...asked,
    variables: variablesYaml({ request, local }),
    environment: environmentYaml(environment, writing),
    tests: tests && testsYaml(tests, writing),
    ...(steps && stepsYaml(steps, { agent, artifacts, artifactsExcept }, writing)),
    solution: oracle && oracleYaml(oracle, writing),
    ...(Object.keys(agent).length > 0 && { agent: agentYaml(agent) }),
    artifacts,
    artifactsExcept,
  });
  return { yaml: yaml as ImportedCase['yaml'], files, contexts };
}

/** The variables without the instruction if the case has steps, because each step has its own. */
function variablesYaml({ request: { variables = {} }, local: { steps } }: PlannedCase) {
  if (!steps) return variables;
  const { instruction, ...others } = variables;
  if (instruction !== instructionOf(steps.list))
    throw new NotCarried('its instruction is not that of its steps');
  return others;
}

/** What a case says for all of its steps. */
interface CommonParts {
  agent: CaseAgent;
  artifacts: readonly string[];
  artifactsExcept: readonly string[];
}

/** The steps of a case as a suite file says them. Throws {@link NotCarried}. */
function stepsYaml({ list, strategy, thresholds }: CaseSteps, common: CommonParts, writing: Writing) {
  return {
    steps: list.map((step, index) => {
      const folder = `${index + 1}-${step.name.replaceAll(/[^\w-]+/g, '_').slice(0, 50)}`;
      return stepYaml(step, common, writingIn(`steps/${folder}`, writing));
    }),
    overall: {
      rewards: strategy === 'mean' ? undefined : strategy,
      threshold: thresholdYaml(thresholds),
    },
  };
}

function stepYaml(step: CaseStep, common: CommonParts, writing: Writing): Record<string, unknown> {
  const { emptied, files, agent, timeoutMs, tests, artifacts, artifactsExcept = [], oracle, ...rest } = step;
  return {
    ...rest,
    empties: emptied,
    ...(files.length > 0 && { folders: { '.': writing.put('workdir', inWorkspace(files)) } }),
    agent: isDeepStrictEqual(agentYaml(agent), agentYaml(common.agent)) ? undefined : agentYaml(agent),
    timeout: timeoutMs,
    tests: testsYaml(tests, writing, stepThresholdYaml),
    artifacts: beyond(common.artifacts, artifacts),
    artifactsExcept: beyond(common.artifactsExcept, artifactsExcept),
    solution: oracle && oracleYaml(oracle, writing),
  };
}

/** An agent of a case, or of a step, as a suite file says it. */
function agentYaml({ network, ...agent }: CaseAgent): Record<string, unknown> {
  return { ...agent, hosts: network?.hosts };
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
  const { files, emptied, timeoutMs, reading, collect = [], network, fresh, ...rest } = tests;
  return {
    ...(fresh && freshYaml(fresh, emptied, writing)),
    folders: foldersYaml(files, emptied, 'tests', writing),
    ...rest,
    thresholds: undefined,
    timeout: timeoutMs,
    collect: collect.map(({ timeoutMs: timeout, ...each }) => ({ ...each, timeout })),
    ...readingYaml(reading, writing),
    hosts: network?.hosts,
    threshold: thresholds(tests.thresholds),
  };
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
  return { ...place, brings: 'workspace', patch, restored };
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
        named: {
          parser,
          report,
          failToPass: names(failToPass, 'fail-to-pass.json'),
          passToPass: names(passToPass, 'pass-to-pass.json'),
        },
      };
    }
  }
}

function oracleYaml({ files, ...rest }: CaseOracle, writing: Writing): Record<string, unknown> {
  const tops = files.map(({ path }) => `/${path.split('/')[1]}`);
  return { ...rest, folders: foldersYaml(files, tops, 'solution', writing) };
}

/** Each folder of the sandbox with the folder of the case that has its files. */
function foldersYaml(
  files: readonly PlacedFile[],
  roots: readonly string[],
  name: string,
  { put }: Writing,
): Record<string, string> {
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
  return folders;
}

/** What the rewards of a trial must reach. */
function thresholdYaml({ default: usualThreshold, byName, required }: Thresholds): unknown {
  if (required || usualThreshold === undefined) throw new NotCarried('its thresholds are those of a step');
  const hasNames = Object.keys(byName).length > 0;
  if (hasNames && usualThreshold !== 1)
    throw new NotCarried('its thresholds are by name, with a default other than 1');
  return hasNames ? byName : usualThreshold === 1 ? undefined : usualThreshold;
}

/** What the rewards of a step must reach for the next one to run. */
function stepThresholdYaml({ default: usual, byName, required }: Thresholds): unknown {
  if (!required || usual !== undefined) throw new NotCarried('the thresholds of a step are those of a trial');
  return Object.keys(byName).length === 0 ? undefined : byName;
}
