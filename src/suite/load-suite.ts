import { existsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { inputError, type OffsiteError } from '../base/offsite-error.ts';
import type { KnownKeys } from '../redaction/redactor.ts';
import { answersOfSuite, namedFiles, withGiven } from './answers.ts';
import { judgesOf } from './checks-source.ts';
import type { Config } from './config-file.ts';
import { BadFile, type FileIssue } from './file-issues.ts';
import type { FetchedSources } from './git/fetch-sources.ts';
import { plannedCase } from './load-case.ts';
import type { PlannedCase, PromptSource, SuitePlan } from './plan.ts';
import { findModel, type HarnessOffer, plannedVariant, unknownModel } from './planned-variant.ts';
import { FileReader, heldKey, reachedFolder, readFile } from './read-file.ts';
import { readSuite } from './read-suite.ts';
import type { CaseSource, SuiteFile } from './suite-file.ts';
import { SuitePart } from './suite-part.ts';
import type { TasksSource } from './tasks-source.ts';
import { isUnwritten } from './variables.ts';

export interface SuiteOptions {
  /** Files and folders outside the suite's folder that it may read. */
  allowOutside?: readonly string[] | undefined;
  /** Folders that it may never read. */
  except?: readonly string[] | undefined;
  /** Keys that the suite must not contain. */
  keys?: KnownKeys | undefined;
  /** Makes cases of the tasks at an absolute path. Without it, a suite with tasks is refused. */
  planTasks?: PlanTasks | undefined;
  /** Whether prompts may still be placeholders, because no agent gets them. */
  unwritten?: boolean | undefined;
  /** What `fetchSources()` returned. Without it, a suite with git sources is refused. */
  sources?: FetchedSources | undefined;
}

/**
 * Reads a suite file and all files that it names, and checks it against the configuration. Throws {@link
 * BadFile} with the problems and their positions. Starts nothing.
 *
 * @param harnesses the harnesses of this Offsite
 */
export function loadSuite(
  file: string,
  config: Config,
  harnesses: readonly HarnessOffer[],
  { allowOutside = [], except = [], keys, planTasks, sources, unwritten = false }: SuiteOptions = {},
): SuitePlan {
  const yaml = sources?.suite ?? readSuite(file);
  const source = yaml.value;
  const folder = dirname(file);
  const reach = { within: [folder, ...allowOutside], except };
  const files = new FileReader({ reach, keys });
  const own = [resolve(file), ...namedFiles(source).map((name) => resolve(folder, name))];
  const suite = new SuitePart({
    yaml,
    folder,
    files,
    reach,
    images: config.images,
    keys,
    own: { suite: readFile(file).content, own },
    sources,
  });
  const prompt = promptOf(suite);
  const { cases: entries = [], judges: common = [] } = source;
  const cases = source.tasks
    ? tasksOf(source.tasks, prompt, suite, planTasks)
    : casesOf(entries, prompt, suite);
  if (!unwritten) refuseUnwritten(prompt, entries, suite);
  const meetsUser = entries.some(({ user }) => user !== undefined);
  const variants = source.variants.map((variant, index) =>
    plannedVariant(variant, { config, harnesses, meetsUser, keys }, (key, message) =>
      suite.at('variants', index, key).report(message),
    ),
  );
  const refuseUnknown = (judge: string, part: SuitePart) => {
    if (!findModel(judge, config)) part.report(unknownModel(judge, config));
  };
  for (const [index, judge] of common.entries()) refuseUnknown(judge, suite.at('judges', index));
  const ofCases = entries.map(judgesOf);
  for (const [index, named] of ofCases.entries())
    for (const judge of named) refuseUnknown(judge, suite.at('cases', index, 'judge'));
  const judges = [...new Set([...common, ...ofCases.flat()])];
  suite.issues.push(...missingScripts({ ...source, judges }, config));
  suite.at('cases').refuseRepeated(
    entries.map(({ id }) => id),
    'id',
  );
  suite.at('variants').refuseRepeated(
    variants.map((variant) => variant?.name ?? ''),
    'name',
  );
  if (suite.issues.length > 0) throw new BadFile(suite.issues);
  const plan: SuitePlan = {
    file,
    suite: { id: source.suite.id, name: source.suite.name ?? source.suite.id, prompt },
    trials: source.trials,
    cases,
    answers: answersOfSuite(cases),
    variants: variants.filter((variant) => variant !== undefined),
    judges,
  };
  // The suite's files were checked for keys when they were read. This checks the YAML itself and the
  // configuration.
  const held = keys?.findIn(plan);
  if (held) {
    const path = held.path.filter((key) => key !== 'request' && key !== 'local');
    throw new BadFile([yaml.issue(path, heldKey(held.name))]);
  }
  return plan;
}

function casesOf(entries: readonly CaseSource[], prompt: PromptSource, suite: SuitePart): PlannedCase[] {
  const cases = entries.map((entry, index) => plannedCase(entry, suite.at('cases', index), prompt));
  // With a problem, files may be missing.
  return suite.issues.length > 0 ? cases.map(({ planned }) => planned) : withGiven(cases);
}

/** The used scripted models whose file is missing, at their places in the configuration. */
function missingScripts({ variants, judges = [] }: SuiteFile, config: Config): FileIssue[] {
  const used = [...variants.flatMap(({ model, userModel = [] }) => [model].concat(userModel)), ...judges];
  return Object.entries(config.models).flatMap(([name, model]) => {
    const isUsed = used.some((one) => one === name || model.aliases.includes(one));
    if (!config.issue || !isUsed || !('scripted' in model) || existsSync(model.scripted)) return [];
    return [config.issue(['models', name, 'scripted'], `there is no file ${model.scripted}`)];
  });
}

/** Refuses placeholders of `offsite case add` that are still in the suite. */
function refuseUnwritten(prompt: PromptSource, entries: readonly CaseSource[], suite: SuitePart): void {
  const message = 'is still a placeholder; write what the agent is asked';
  if (prompt.kind === 'text' && isUnwritten(prompt.text)) suite.at('suite', 'prompt').report(message);
  for (const [index, { variables = {} }] of entries.entries())
    for (const [name, value] of Object.entries(variables))
      if (isUnwritten(value)) suite.at('cases', index, 'variables', name).report(message);
}

function promptOf(part: SuitePart): PromptSource {
  const { suite, tasks, cases } = part.source;
  if (!tasks && !cases) part.report('has neither cases nor tasks');
  if (tasks && cases) part.at('tasks').report('is in place of cases; remove one of them');
  const { prompt = '{{instruction}}' } = suite;
  if (typeof prompt === 'object' && 'prompt' in prompt) {
    const { prompt: id, channel, version } = prompt;
    return { kind: 'stored', id, channel, version };
  }
  return { kind: 'text', text: part.at('suite', 'prompt').text(prompt) };
}

/** The cases that the suite takes from a set of tasks. */
function tasksOf(
  source: TasksSource,
  prompt: PromptSource,
  suite: SuitePart,
  plan: PlanTasks | undefined,
): PlannedCase[] {
  for (const key of ['environment', 'artifacts', 'source'] as const)
    if (suite.source[key] !== undefined) suite.at(key).report('has no effect on tasks; remove it');
  if (prompt.kind === 'text')
    suite.at('suite', 'prompt').refuseUnknownNames(prompt.text, { instruction: '' }, ' of a task');
  return suite.at('tasks').attempt(() => casesOfTasks(source, suite, plan)) ?? [];
}

/** Makes cases of the tasks at an absolute path. */
type PlanTasks = (source: TasksSource) => PlannedCase[];

/** The cases of a suite's `tasks`. Throws `input` errors, and errors of the file system. */
function casesOfTasks(
  { build, ...given }: TasksSource,
  suite: SuitePart,
  plan: PlanTasks | undefined,
): PlannedCase[] {
  if (!plan) throw refused('this command takes no tasks: use `offsite run` or `offsite check`');
  const { reach } = suite.reading;
  const path = suite.resolve(given.path);
  reachedFolder(statSync(path).isDirectory() ? path : dirname(path), reach);
  const context = build && suite.resolve(build.context);
  if (context !== undefined) reachedFolder(context, reach);
  const cases = plan({
    ...given,
    path,
    ...(build && context !== undefined && { build: { ...build, context } }),
  });
  if (cases.length === 0) throw refused('none of these tasks can run here');
  return cases;
}

function refused(message: string): OffsiteError {
  return inputError('NO_TASKS', message);
}
