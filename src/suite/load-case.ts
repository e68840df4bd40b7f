import { basename, dirname, posix, relative } from 'node:path';
import type { Case, Validator } from '../contract/definition.ts';
import type { AgentSource } from './agent-source.ts';
import { answersOf, type Hiding } from './answers.ts';
import { type CaseAgent, type CaseStep, type CaseSteps, instructionOf, thresholdsOf } from './case-tests.ts';
import { workdirObstacle } from './environment.ts';
import { keyOfSource } from './git/fetch-sources.ts';
import type { PlannedSource } from './git/git-source.ts';
import { environmentOf } from './load-environment.ts';
import { placedFiles, plannedOracle, plannedTests, validatorOfChecks } from './load-tests.ts';
import { freshVerify, type PlannedCase, type PromptSource, type VerifyPlace } from './plan.ts';
import { FileReader } from './read-file.ts';
import type { CaseSource, CombinedSteps, StepSource } from './suite-file.ts';
import type { SuitePart } from './suite-part.ts';
import type { Text } from './text-source.ts';
import {
  fitsEnvironment,
  isReservedName,
  namesIn,
  tooLongForEnvironment,
  type Variables,
} from './variables.ts';

/** A case of a suite file with the files that it names, and what to hide of it. Its problems are reported. */
export function plannedCase(
  entry: CaseSource,
  given: SuitePart,
  prompt: PromptSource,
  files = new FileReader(given.reading),
): { planned: PlannedCase; hiding: Hiding } {
  const part = given.readingWith(files);
  const { verify, validator, user } = entry;
  const local = extrasOf(entry, part);
  const { steps } = local;
  const variables = { ...entry.variables, ...(steps && { instruction: instructionOf(steps.list) }) };
  refuseVariables(entry, part);
  refuseGrading(entry, part);
  if (prompt.kind === 'text') {
    const ofPrompt = part.whole.at('suite', 'prompt');
    ofPrompt.refuseUnknownNames(prompt.text, variables, ` in case ${entry.id}`);
    // Its steps would all ask the agent the same.
    if (steps && !namesIn(prompt.text).has('instruction'))
      ofPrompt.report(`has no {{instruction}}, which the steps of case ${entry.id} have`);
  }
  const request: Case = { id: entry.id, name: entry.name ?? entry.id };
  if (entry.tags) request.tags = entry.tags;
  if (entry.source && 'kind' in entry.source) request.source = entry.source;
  if (entry.variables || steps) request.variables = variables;
  if (entry.prepare !== undefined) request.prepare = prepareOf(entry.prepare, variables, part.at('prepare'));
  if (verify !== undefined)
    request.verify = part
      .at('verify')
      .bash(typeof verify === 'object' && 'source' in verify ? verify.source : verify, variables);
  if (validator) request.validator = plannedValidator(validator, variables, part.at('validator'));
  if (entry.checks || entry.judge) request.validator = validatorOfChecks(entry, variables, part);
  if (user) {
    const at = part.at('user');
    request.user = {
      kind: user.kind,
      goal: at.at('goal').script(user.goal, variables),
      prompt: at.at('prompt').script(user.prompt, variables),
    };
    part.source.variants.forEach(({ userModel, name }, index) => {
      if (userModel === undefined)
        at.report(`variants[${index}]${name ? ` (${name})` : ''} has no userModel to play this user`);
    });
  }
  const planned = { request, local };
  const { files: named = {}, folders = {} } = entry.environment ?? part.source.environment ?? {};
  const hiding = {
    ...part.reading.own,
    givenFiles: local.environment.files?.filter((file) => Object.hasOwn(named, file.path)),
    givenFolders: Object.values(folders).map((folder) => part.resolve(folder)),
  };
  // With a problem, files may be missing.
  if (part.issues.length > 0) return { planned, hiding };
  return { planned: { request, local: { ...local, answers: answersOf(planned, hiding) } }, hiding };
}

function refuseVariables({ variables = {}, steps }: CaseSource, part: SuitePart): void {
  for (const [name, value] of Object.entries(variables)) {
    const refuse = (message: string) => part.at('variables', name).report(message);
    if (isReservedName(name)) refuse('this name decides how programs run; choose another one');
    if (name === 'instruction') {
      // It is the prompt, which programs get as a file.
      if (steps) refuse('is set by each step; remove it here');
    } else if (!fitsEnvironment(name, value)) refuse(tooLongForEnvironment);
  }
}

function refuseGrading({ steps, ...entry }: CaseSource, part: SuitePart): void {
  const { tests, verify, validator, checks, judge } = entry;
  if (validator && (checks || judge))
    part.at('validator').report('replaces checks and judge; remove either it or those');
  if (tests && (verify !== undefined || validator))
    part
      .at('tests')
      .report(
        'replaces verify and validator; remove either it or those (checks and a judge may stand beside it)',
      );
  if (verify === undefined && !(tests || validator || checks || judge || steps))
    part.report(
      'has neither verify nor checks nor a judge, validator or tests: with nothing to check, every trial would be void',
    );
  if (entry.overall && !steps) part.at('overall').report('requires steps');
  for (const key of steps ? ofWholeCases : [])
    if (entry[key] !== undefined)
      part.at(key).report('has no place in a case with steps; each step has its own tests');
}

/** What a case with steps does not have. */
const ofWholeCases = [
  'tests',
  'verify',
  'checks',
  'judge',
  'validator',
  'user',
  'solution',
  'protected',
] as const;

function extrasOf(entry: CaseSource, part: SuitePart): PlannedCase['local'] {
  const { solution, validator, user, tests, steps, artifactsExcept } = entry;
  const { overall = { rewards: 'mean', threshold: 1 } } = entry;
  const oracle = typeof solution === 'object' && 'command' in solution ? solution : undefined;
  const agent = entry.agent && agentOf(entry.agent, part.at('agent'));
  const artifacts = [...(part.source.artifacts ?? []), ...(entry.artifacts ?? [])];
  return {
    artifacts,
    ...(artifactsExcept && { artifactsExcept }),
    ...(agent && { agent }),
    protected: entry.protected ?? [],
    runsIn: validator?.runsIn ?? 'fresh',
    verifyPlace: verifyPlaceOf(entry.verify, part.at('verify')),
    onError: validator?.onError ?? 'void',
    userTurns: user?.maxTurns ?? 0,
    solution:
      solution === undefined || oracle
        ? undefined
        : part.at('solution').bash(solution as Text, entry.variables ?? {}),
    environment: withSource(entry, part),
    ...(tests && { tests: plannedTests(tests, part.at('tests')) }),
    ...(steps && {
      steps: plannedSteps(steps, overall, { agent, artifacts, artifactsExcept }, part.at('steps')),
    }),
    ...(oracle && { oracle: plannedOracle(oracle, part.at('solution')) }),
  };
}

/** The environment of a case, with its repository. */
function withSource({ environment, source, tests, checks, judge, steps }: CaseSource, part: SuitePart) {
  const planned = environmentOf(environment, part);
  // Tests alone need no sandbox whose workspace is emptied.
  const isKept = steps || (tests && !checks && !judge);
  const { workdir } = planned;
  const obstacle = workdir === undefined || isKept ? undefined : workdirObstacle(workdir);
  if (obstacle !== undefined)
    (environment ? part : part.whole).at('environment', 'workdir').report(`${workdir}: ${obstacle}`);
  const repository = repositoryOf(source, part);
  return repository ? { ...planned, source: repository } : planned;
}

/** The repository of a case, or the suite's if the case has no source. Undefined for none. */
function repositoryOf(own: CaseSource['source'], part: SuitePart): PlannedSource | undefined {
  const source = own ?? part.source.source;
  if (!source || !('git' in source)) return undefined;
  const fetched = part.reading.sources?.byKey.get(keyOfSource(source));
  if (fetched && 'commit' in fetched) return fetched;
  (own ? part : part.whole)
    .at('source', fetched?.key ?? 'git')
    .report(fetched?.problem ?? 'this command takes no git sources');
  return undefined;
}

function verifyPlaceOf(verify: CaseSource['verify'], part: SuitePart): VerifyPlace {
  if (typeof verify !== 'object') return freshVerify;
  const { in: where = 'fresh', keep = [], ignore = [], unexpected } = verify;
  if (unexpected !== undefined && where === 'fresh')
    part.at('unexpected').report('requires in: same; a fresh sandbox shows no such changes');
  return { in: where, keep, ignore, unexpected: unexpected ?? 'show' };
}

function prepareOf(
  prepare: NonNullable<CaseSource['prepare']>,
  variables: Variables,
  part: SuitePart,
): Case['prepare'] {
  const parts = typeof prepare === 'string' ? { source: prepare } : prepare;
  const name = ('name' in parts && parts.name) || ('file' in parts ? basename(parts.file) : 'prepare');
  return { name, source: part.bash('file' in parts ? { file: parts.file } : parts.source, variables) };
}

/** A case's validator with its source and the files beside it. Its problems are reported. */
function plannedValidator(
  entry: NonNullable<CaseSource['validator']>,
  variables: Variables,
  part: SuitePart,
): Validator {
  const file = 'file' in entry ? entry.file : undefined;
  const source = part.script('file' in entry ? { file: entry.file } : entry.source, variables);
  const folder = dirname(file ?? '.');
  const { name = file === undefined ? 'validator' : basename(file), capture, manifest, sourceFiles } = entry;
  if (entry.runsIn === 'same' && source.startsWith('#!'))
    part
      .at('runsIn')
      .report(
        'a program would start with what the agent left in its sandbox; make it a module, or remove runsIn',
      );
  if ((part.source.judges ?? []).length === 0 && asksJudge(source))
    part.report('asks a judge, and the suite has none: list models of offsite.yaml under `judges`');
  return {
    name,
    source,
    ...(capture !== undefined && { capture }),
    ...(manifest && { manifest: manifest.map((name, index) => ({ index, name })) }),
    ...(sourceFiles && {
      sourceFiles: sourceFiles.map((path, index) => {
        const beside = relative(folder, path);
        const content = part.at('sourceFiles', index).text({ file: path });
        return { path: beside.startsWith('..') ? basename(path) : beside, content };
      }),
    }),
  };
}

/** Whether a module calls `judge()` of a validation, as far as its text shows. A program cannot. */
function asksJudge(source: string): boolean {
  const code = source.replaceAll(/^[ \t]*(?:\/\/|\/?\*).*$/gm, '');
  const isOwn = /function judge\b|(?:const|let|var) judge\b/.test(code);
  return !source.startsWith('#!') && !isOwn && /(?<![\w$])judge\(\s*\{/.test(code);
}

/** What the steps of a case have in common. */
type CommonParts = Pick<PlannedCase['local'], 'agent' | 'artifacts' | 'artifactsExcept'>;

/** The steps of a case with their files. What is wrong with them is reported. */
function plannedSteps(
  steps: readonly StepSource[],
  { rewards, threshold }: CombinedSteps,
  common: CommonParts,
  part: SuitePart,
): CaseSteps {
  const names = steps.map(({ name }) => name);
  part.refuseRepeated(names, 'name');
  return {
    list: steps.map((step, index) => plannedStep(step, common, part.at(index))),
    strategy: rewards,
    thresholds: thresholdsOf(threshold),
  };
}

function plannedStep(step: StepSource, common: CommonParts, part: SuitePart): CaseStep {
  const { name, instruction, folders = {}, files = {}, empties = [], setup, solution, tests } = step;
  const { healthcheck, agent, timeout, artifacts = [], artifactsExcept = [] } = step;
  const placed = placedFiles({ folders, files }, part);
  if (setup !== undefined && !placed.some((file) => posix.normalize(file.path) === posix.normalize(setup)))
    part.at('setup').report('is none of the files of this step');
  const except = [...(common.artifactsExcept ?? []), ...artifactsExcept];
  return {
    name,
    instruction: part.at('instruction').text(instruction),
    files: placed,
    emptied: empties,
    setup,
    healthcheck,
    agent: agent ? agentOf(agent, part.at('agent')) : (common.agent ?? {}),
    timeoutMs: timeout,
    tests: {
      ...plannedTests(tests, part.at('tests')),
      thresholds: { byName: tests.threshold, required: true },
    },
    artifacts: [...common.artifacts, ...artifacts],
    ...(except.length > 0 && { artifactsExcept: except }),
    oracle: solution && plannedOracle(solution, part.at('solution')),
  };
}

/** What a case, or one of its steps, says about its agent. */
function agentOf({ hosts, ...agent }: AgentSource, part: SuitePart): CaseAgent {
  return { ...agent, ...(hosts && { network: { hosts, at: part.at('hosts').place } }) };
}
