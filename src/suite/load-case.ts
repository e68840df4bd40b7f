import { basename, dirname, posix, relative, resolve } from 'node:path';
import type { Case, Validator } from '../contract/definition.ts';
import type { AgentSource } from './agent-source.ts';
import { answersOf, type Hiding } from './answers.ts';
import { type CaseAgent, type CaseStep, type CaseSteps, instructionOf, thresholdsOf } from './case-tests.ts';
import { workdirObstacle } from './environment.ts';
import { type CasePart, placedFiles, plannedOracle, plannedTests, validatorOfChecks } from './load-tests.ts';
import { freshVerify, type PlannedCase, type PromptSource, type VerifyPlace } from './plan.ts';
import { FileReader } from './read-file.ts';
import type { CaseSource, CombinedSteps, StepSource } from './suite-file.ts';
import type { SuiteReader } from './suite-reader.ts';
import type { Text } from './text-source.ts';
import {
  countNames,
  fitsEnvironment,
  isReservedName,
  tooLongForEnvironment,
  type Variables,
} from './variables.ts';
import type { Path } from './yaml-file.ts';

/** A case of a suite file with the files that it names, and what to hide of it. Its problems are reported. */
export function plannedCase(
  entry: CaseSource,
  index: number,
  prompt: PromptSource,
  reader: SuiteReader,
  // Each case may have as many bytes as the texts of the suite together.
  files = new FileReader(reader.parts),
): { planned: PlannedCase; hiding: Hiding } {
  const path = ['cases', index];
  const part: CasePart = { path, reader, files };
  const extras = extrasOf(entry, part);
  const { steps } = extras;
  const variables = { ...entry.variables, ...(steps && { instruction: instructionOf(steps.list) }) };
  for (const name of Object.keys(variables).filter(isReservedName)) {
    reader.report([...path, 'variables', name], 'this name decides how programs run; choose another one');
  }
  // An instruction is the prompt, which programs get as a file.
  for (const [name, value] of Object.entries(entry.variables ?? {}))
    if (name !== 'instruction' && !fitsEnvironment(name, value))
      reader.report([...path, 'variables', name], tooLongForEnvironment);
  if (prompt.kind === 'text')
    reader.refuseUnknownNames(prompt.text, variables, ['suite', 'prompt'], ` in case ${entry.id}`);
  refuseGrading(entry, path, reader);
  if (steps) refuseFixedInstruction(entry, prompt, path, reader);
  const request: Case = { id: entry.id, name: entry.name ?? entry.id };
  if (entry.tags) request.tags = entry.tags;
  if (entry.source && 'kind' in entry.source) request.source = entry.source;
  if (entry.variables || steps) request.variables = variables;
  if (entry.prepare !== undefined)
    request.prepare = prepareOf(entry.prepare, variables, [...path, 'prepare'], reader);
  if (entry.verify !== undefined)
    request.verify = reader.bash(scriptOf(entry.verify), variables, [...path, 'verify']);
  if (entry.validator)
    request.validator = plannedValidator(entry.validator, variables, [...path, 'validator'], reader);
  if (entry.checks || entry.judge) request.validator = validatorOfChecks(entry, variables, path, reader);
  if (entry.user) {
    const { kind, goal, prompt } = entry.user;
    request.user = {
      kind,
      goal: reader.script(goal, variables, [...path, 'user', 'goal']),
      prompt: reader.script(prompt, variables, [...path, 'user', 'prompt']),
    };
    refuseLoneUser([...path, 'user'], reader);
  }
  const planned = { request, local: extras };
  const { files: given = {}, folders = {} } = entry.environment ?? reader.source.environment ?? {};
  const givenFiles = extras.environment.files?.filter((file) => Object.hasOwn(given, file.path));
  const givenFolders = Object.values(folders).map((folder) => resolve(reader.parts.folder, folder));
  const hiding = { ...reader.own, givenFiles, givenFolders };
  // With a problem, files may be missing.
  if (reader.issues.length > 0) return { planned, hiding };
  return { planned: { request, local: { ...extras, answers: answersOf(planned, hiding) } }, hiding };
}

function refuseGrading(entry: CaseSource, path: Path, reader: SuiteReader): void {
  const { tests, verify, validator, checks, judge, steps, overall } = entry;
  const isValidated = validator !== undefined || checks !== undefined || judge !== undefined;
  const isVerified = verify !== undefined || isValidated;
  if (validator && (checks || judge))
    reader.report([...path, 'validator'], 'replaces checks and judge; remove either it or those');
  if (tests && (verify !== undefined || validator))
    reader.report(
      [...path, 'tests'],
      'replaces verify and validator; remove either it or those (checks and a judge may stand beside it)',
    );
  if (!tests && !isVerified && !steps)
    reader.report(
      path,
      'has neither verify nor checks nor a judge, validator or tests: with nothing to check, every trial would be void',
    );
  if (overall && !steps) reader.report([...path, 'overall'], 'requires steps');
  if (!steps) return;
  for (const key of [
    'tests',
    'verify',
    'checks',
    'judge',
    'validator',
    'user',
    'solution',
    'protected',
  ] as const)
    if (entry[key] !== undefined)
      reader.report([...path, key], 'has no place in a case with steps; each step has its own tests');
}

/** Refuses a case whose steps would all ask the agent the same, which is a mistake. */
function refuseFixedInstruction(
  { id, variables = {} }: CaseSource,
  prompt: PromptSource,
  path: Path,
  reader: SuiteReader,
): void {
  if ('instruction' in variables)
    reader.report([...path, 'variables', 'instruction'], 'is set by each step; remove it here');
  if (prompt.kind === 'text' && !countNames(prompt.text).names.has('instruction'))
    reader.report(['suite', 'prompt'], `has no {{instruction}}, which the steps of case ${id} have`);
}

function extrasOf(entry: CaseSource, part: CasePart): PlannedCase['local'] {
  const { path, reader } = part;
  const { solution, validator, user, tests, steps } = entry;
  const { overall = { rewards: 'mean', threshold: 1 } } = entry;
  const oracle = typeof solution === 'object' && 'command' in solution ? solution : undefined;
  const agent = entry.agent && agentOf(entry.agent, [...path, 'agent'], reader);
  const artifacts = [...(reader.source.artifacts ?? []), ...(entry.artifacts ?? [])];
  const { artifactsExcept = [] } = entry;
  return {
    artifacts,
    ...(entry.artifactsExcept && { artifactsExcept }),
    ...(agent && { agent }),
    protected: entry.protected ?? [],
    runsIn: validator?.runsIn ?? 'fresh',
    verifyPlace: verifyPlaceOf(entry.verify, [...path, 'verify'], reader),
    onError: validator?.onError ?? 'void',
    userTurns: user?.maxTurns ?? 0,
    solution:
      solution === undefined || oracle
        ? undefined
        : reader.bash(solution as Text, entry.variables ?? {}, [...path, 'solution']),
    environment: environmentOf(entry, path, reader),
    ...(tests && { tests: plannedTests(tests, { ...part, path: [...path, 'tests'] }) }),
    ...(steps && { steps: plannedSteps(steps, overall, { agent, artifacts, artifactsExcept }, part) }),
    ...(oracle && { oracle: plannedOracle(oracle, { ...part, path: [...path, 'solution'] }) }),
  };
}

function environmentOf(
  { environment, source, tests, checks, judge, steps }: CaseSource,
  path: Path,
  reader: SuiteReader,
) {
  const planned = reader.environment(environment, path);
  // Tests alone need no sandbox whose workspace is emptied.
  const isKept = tests && !checks && !judge;
  const { workdir } = planned;
  const obstacle = workdir === undefined || isKept || steps ? undefined : workdirObstacle(workdir);
  if (obstacle !== undefined)
    reader.reportOnce([...(environment ? path : []), 'environment', 'workdir'], `${workdir}: ${obstacle}`);
  const repository = reader.repository(source, path);
  return repository ? { ...planned, source: repository } : planned;
}

function verifyPlaceOf(verify: CaseSource['verify'], path: Path, reader: SuiteReader): VerifyPlace {
  if (typeof verify !== 'object') return freshVerify;
  const { in: where = 'fresh', keep = [], ignore = [], unexpected } = verify;
  if (unexpected !== undefined && where === 'fresh') {
    reader.report([...path, 'unexpected'], 'requires in: same; a fresh sandbox shows no such changes');
  }
  return { in: where, keep, ignore, unexpected: unexpected ?? 'show' };
}

/** Every variant needs a model for the simulated user. */
function refuseLoneUser(path: Path, reader: SuiteReader): void {
  reader.source.variants.forEach(({ userModel, name }, index) => {
    if (userModel === undefined) {
      reader.report(path, `variants[${index}]${name ? ` (${name})` : ''} has no userModel to play this user`);
    }
  });
}

function prepareOf(
  prepare: NonNullable<CaseSource['prepare']>,
  variables: Variables,
  path: Path,
  reader: SuiteReader,
): Case['prepare'] {
  const parts = typeof prepare === 'string' ? { source: prepare } : prepare;
  const name = ('name' in parts && parts.name) || ('file' in parts ? basename(parts.file) : 'prepare');
  const text = 'file' in parts ? { file: parts.file } : parts.source;
  return { name, source: reader.bash(text, variables, path) };
}

function scriptOf(verify: NonNullable<CaseSource['verify']>): Text {
  return typeof verify === 'object' && 'source' in verify ? verify.source : verify;
}

/** A case's validator with its source and the files beside it. Its problems are reported. */
function plannedValidator(
  entry: NonNullable<CaseSource['validator']>,
  variables: Variables,
  path: Path,
  reader: SuiteReader,
): Validator {
  const file = 'file' in entry ? entry.file : undefined;
  const text = 'file' in entry ? { file: entry.file } : entry.source;
  const folder = dirname(file ?? '.');
  const validator: Validator = {
    name: entry.name ?? (file === undefined ? 'validator' : basename(file)),
    source: reader.script(text, variables, path),
  };
  if (entry.runsIn === 'same' && validator.source.startsWith('#!')) {
    reader.report(
      [...path, 'runsIn'],
      'a program would start with what the agent left in its sandbox; make it a module, or remove runsIn',
    );
  }
  if ((reader.source.judges ?? []).length === 0 && asksJudge(validator.source))
    reader.report(path, 'asks a judge, and the suite has none: list models of offsite.yaml under `judges`');
  if (entry.capture !== undefined) validator.capture = entry.capture;
  if (entry.manifest) validator.manifest = entry.manifest.map((name, index) => ({ index, name }));
  if (entry.sourceFiles) {
    validator.sourceFiles = entry.sourceFiles.map((sourceFile, index) => {
      const beside = relative(folder, sourceFile);
      return {
        path: beside.startsWith('..') ? basename(sourceFile) : beside,
        content: reader.text({ file: sourceFile }, [...path, 'sourceFiles', index]),
      };
    });
  }
  return validator;
}

/** Whether a module calls `judge()` of a validation, as far as its text shows. A program cannot. */
function asksJudge(source: string): boolean {
  const code = source.replaceAll(/^[ \t]*(?:\/\/|\/?\*).*$/gm, '');
  const isOwn = /function judge\b|(?:const|let|var) judge\b/.test(code);
  return !source.startsWith('#!') && !isOwn && /(?<![\w$])judge\(\s*\{/.test(code);
}

/** What the steps of a case have in common. */
interface CommonParts {
  agent: CaseAgent | undefined;
  artifacts: readonly string[];
  artifactsExcept: readonly string[];
}

/** The steps of a case with their files. What is wrong with them is reported. */
function plannedSteps(
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
    files: placed,
    emptied: empties,
    setup,
    healthcheck,
    agent: agent ? agentOf(agent, [...path, 'agent'], reader) : (common.agent ?? {}),
    timeoutMs: timeout,
    tests: {
      ...plannedTests(tests, { ...part, path: [...path, 'tests'] }),
      thresholds: { byName: tests.threshold, required: true },
    },
    artifacts: [...common.artifacts, ...artifacts],
    ...(except.length > 0 && { artifactsExcept: except }),
    oracle: solution && plannedOracle(solution, { ...part, path: [...path, 'solution'] }),
  };
}

/** What a case, or one of its steps, says about its agent. */
function agentOf({ hosts, ...agent }: AgentSource, path: Path, reader: SuiteReader): CaseAgent {
  return { ...agent, ...(hosts && { network: { hosts, at: reader.issueAt([...path, 'hosts']) } }) };
}
