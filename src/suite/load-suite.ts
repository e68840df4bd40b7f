import { existsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { inputError, messageOf, type OffsiteError } from '../base/offsite-error.ts';
import type { KnownKeys } from '../redaction/redactor.ts';
import { answersOfSuite, namedFiles, withGiven } from './answers.ts';
import { judgesOf } from './checks-source.ts';
import type { Config } from './config-file.ts';
import { BadFile, type FileIssue } from './file-issues.ts';
import type { FetchedSources } from './git/fetch-sources.ts';
import { plannedCase } from './load-case.ts';
import type { PlannedCase, PromptSource, SuitePlan } from './plan.ts';
import { findModel, type HarnessOffer, plannedVariant, unknownModel } from './planned-variant.ts';
import { FileReader, heldKey, type Reach, reachedFolder, readFile } from './read-file.ts';
import { readSuite } from './read-suite.ts';
import type { CaseSource, SuiteFile } from './suite-file.ts';
import { SuiteReader } from './suite-reader.ts';
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
  const reader = new SuiteReader(
    yaml,
    { folder, files, reach, images: config.images, keys },
    { suite: readFile(file).content, own },
    sources,
  );
  const prompt = promptOf(reader);
  const { cases: entries = [] } = source;
  const cases = source.tasks
    ? tasksOf(source.tasks, prompt, reader, planTasks)
    : casesOf(entries, prompt, reader);
  if (!unwritten) refuseUnwritten(prompt, entries, reader);
  const meetsUser = entries.some(({ user }) => user !== undefined);
  const variants = source.variants.map((variant, index) =>
    plannedVariant(variant, { config, harnesses, meetsUser, keys }, (key, message) =>
      reader.report(['variants', index, key], message),
    ),
  );
  source.judges?.forEach((judge, index) => {
    if (!findModel(judge, config)) reader.report(['judges', index], unknownModel(judge, config));
  });
  const ofCases = entries.flatMap((entry, index) => {
    const named = judgesOf(entry);
    for (const judge of named)
      if (!findModel(judge, config)) reader.report(['cases', index, 'judge'], unknownModel(judge, config));
    return named;
  });
  const judges = [...new Set([...(source.judges ?? []), ...ofCases])];
  reader.issues.push(...missingScripts({ ...source, judges }, config));
  const ids = entries.map(({ id }) => id);
  reader.refuseRepeated(['cases'], ids, 'id');
  const names = variants.map((variant) => variant?.name ?? '');
  reader.refuseRepeated(['variants'], names, 'name');
  if (reader.issues.length > 0) throw new BadFile(reader.issues);
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

function casesOf(entries: readonly CaseSource[], prompt: PromptSource, reader: SuiteReader): PlannedCase[] {
  const cases = entries.map((entry, index) => plannedCase(entry, index, prompt, reader));
  // With a problem, files may be missing.
  return reader.issues.length > 0 ? cases.map(({ planned }) => planned) : withGiven(cases);
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
function refuseUnwritten(prompt: PromptSource, entries: readonly CaseSource[], reader: SuiteReader): void {
  const message = 'is still a placeholder; write what the agent is asked';
  if (prompt.kind === 'text' && isUnwritten(prompt.text)) reader.report(['suite', 'prompt'], message);
  for (const [index, { variables = {} }] of entries.entries())
    for (const [name, value] of Object.entries(variables))
      if (isUnwritten(value)) reader.report(['cases', index, 'variables', name], message);
}

function promptOf(reader: SuiteReader): PromptSource {
  const { suite, tasks, cases } = reader.source;
  if (!tasks && !cases) reader.report([], 'has neither cases nor tasks');
  if (tasks && cases) reader.report(['tasks'], 'is in place of cases; remove one of them');
  const { prompt = '{{instruction}}' } = suite;
  if (typeof prompt === 'object' && 'prompt' in prompt) {
    const { prompt: id, channel, version } = prompt;
    return { kind: 'stored', id, channel, version };
  }
  return { kind: 'text', text: reader.text(prompt, ['suite', 'prompt']) };
}

/** The cases that the suite takes from a set of tasks. */
function tasksOf(
  source: TasksSource,
  prompt: PromptSource,
  reader: SuiteReader,
  plan: PlanTasks | undefined,
): PlannedCase[] {
  for (const key of ['environment', 'artifacts', 'source'] as const) {
    if (reader.source[key] !== undefined) reader.report([key], 'has no effect on tasks; remove it');
  }
  if (prompt.kind === 'text')
    reader.refuseUnknownNames(prompt.text, { instruction: '' }, ['suite', 'prompt'], ' of a task');
  const { folder, reach } = reader.parts;
  try {
    return casesOfTasks(sourceIn(folder, source), reach, plan);
  } catch (error) {
    reader.report(['tasks'], messageOf(error));
    return [];
  }
}

/** Makes cases of the tasks at an absolute path. */
type PlanTasks = (source: TasksSource) => PlannedCase[];

/** A source with absolute paths. */
function sourceIn(folder: string, { path, build, ...source }: TasksSource): TasksSource {
  const context = build && { build: { ...build, context: resolve(folder, build.context) } };
  return { ...source, path: resolve(folder, path), ...context };
}

/** The cases of a suite's `tasks`. Throws `input` errors, and errors of the file system. */
function casesOfTasks(
  source: TasksSource,
  reach: Exclude<Reach, 'anywhere'>,
  plan: PlanTasks | undefined,
): PlannedCase[] {
  if (!plan) throw refused('this command takes no tasks: use `offsite run` or `offsite check`');
  const isFolder = statSync(source.path).isDirectory();
  reachedFolder(isFolder ? source.path : dirname(source.path), reach);
  if (source.build) reachedFolder(source.build.context, reach);
  const cases = plan(source);
  if (cases.length === 0) throw refused('none of these tasks can run here');
  return cases;
}

function refused(message: string): OffsiteError {
  return inputError('NO_TASKS', message);
}
