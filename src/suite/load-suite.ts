import { basename, dirname, join, relative, resolve } from 'node:path';
import type { Case, Validator } from '../contract/definition.ts';
import { messageOf } from '../offsite-error.ts';
import type { KnownKeys } from '../redaction/known-keys.ts';
import type { Config } from './config-file.ts';
import { type CaseEnvironment, type EnvironmentSource, noEnvironment } from './environment.ts';
import { BadFile, type FileIssue, positionInText } from './file-issues.ts';
import { FileReader, heldKey } from './file-reader.ts';
import { type EnvironmentParts, plannedEnvironment } from './load-environment.ts';
import {
  type CaseExtras,
  freshVerify,
  type PlannedCase,
  type PromptSource,
  type SuitePlan,
  type VerifyPlace,
} from './plan.ts';
import { findModel, type HarnessOffer, plannedVariant, unknownModel } from './planned-variant.ts';
import { type CaseSource, SuiteFile, type Text } from './suite-file.ts';
import { casesOfTasks, type PlanTasks, sourceIn } from './suite-tasks.ts';
import type { TasksSource } from './tasks-source.ts';
import { expandVariables, isReservedName, type Variables } from './variables.ts';
import { readYamlFile, type YamlFile } from './yaml-file.ts';

export interface SuiteOptions {
  /** Files and folders outside the suite's folder that it may read. */
  allowOutside?: readonly string[] | undefined;
  /** Folders that it may never read. */
  except?: readonly string[] | undefined;
  /** Keys that the suite must not contain. */
  keys?: KnownKeys | undefined;
  /** Makes cases of the tasks at an absolute path. Without it, a suite with tasks is refused. */
  planTasks?: PlanTasks | undefined;
}

/**
 * Reads a suite file and all files that it names, and checks it against the configuration. Throws {@link
 * BadFile} with every problem and its position. Starts nothing.
 *
 * @param harnesses the harnesses of this Offsite
 */
export function loadSuite(
  file: string,
  config: Config,
  harnesses: readonly HarnessOffer[],
  { allowOutside = [], except = [], keys, planTasks }: SuiteOptions = {},
): SuitePlan {
  const yaml = readYamlFile(file, SuiteFile);
  const source = yaml.value;
  const folder = dirname(file);
  const reach = { within: [folder, ...allowOutside], except };
  const files = new FileReader({ reach, keys });
  const environments = { folder, files, reach, images: config.images, keys };
  const reading = new SuiteReading(yaml, { folder, files, environments });
  const prompt = reading.prompt();
  const { cases: entries = [] } = source;
  const cases = source.tasks
    ? reading.tasks(source.tasks, prompt, planTasks)
    : entries.map((entry, index) => reading.plannedCase(entry, index, prompt));
  const meetsUser = entries.some(({ user }) => user !== undefined);
  const variants = source.variants.map((variant, index) =>
    plannedVariant(variant, { config, harnesses, meetsUser, keys }, (key, message) =>
      reading.report(['variants', index, key], message),
    ),
  );
  source.judges?.forEach((judge, index) => {
    if (!findModel(judge, config)) reading.report(['judges', index], unknownModel(judge, config));
  });
  reading.refuseRepeated(
    'cases',
    entries.map(({ id }) => id),
    'id',
  );
  reading.refuseRepeated(
    'variants',
    variants.map((variant) => variant?.name ?? ''),
    'name',
  );
  if (reading.issues.length > 0) throw new BadFile(reading.issues);
  const plan: SuitePlan = {
    file,
    suite: { id: source.suite.id, name: source.suite.name ?? source.suite.id, prompt },
    trials: source.trials,
    cases,
    variants: variants.filter((variant) => variant !== undefined),
    judges: source.judges ?? [],
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

/** Reads one suite file and the files that it names, and collects the problems. */
class SuiteReading {
  readonly issues: FileIssue[] = [];
  readonly #yaml: YamlFile<SuiteFile>;
  readonly #folder: string;
  readonly #files: FileReader;
  readonly #environmentParts: EnvironmentParts;
  readonly #environments = new Map<EnvironmentSource, CaseEnvironment>();

  constructor(
    yaml: YamlFile<SuiteFile>,
    { environments, ...parts }: { folder: string; files: FileReader; environments: EnvironmentParts },
  ) {
    this.#yaml = yaml;
    this.#folder = parts.folder;
    this.#files = parts.files;
    this.#environmentParts = environments;
  }

  prompt(): PromptSource {
    const { suite, tasks, cases } = this.#yaml.value;
    if (!tasks && !cases) this.report([], 'has neither cases nor tasks');
    if (tasks && cases) this.report(['tasks'], 'is in place of cases; remove one of them');
    const { prompt = '{{instruction}}' } = suite;
    if (typeof prompt === 'object' && 'prompt' in prompt) {
      const { prompt: id, channel, version } = prompt;
      return { kind: 'stored', id, channel, version };
    }
    return { kind: 'text', text: this.#text(prompt, ['suite', 'prompt']) };
  }

  /** The cases that the suite takes from a set of tasks. */
  tasks(source: TasksSource, prompt: PromptSource, plan: PlanTasks | undefined): PlannedCase[] {
    for (const key of ['environment', 'artifacts'] as const) {
      if (this.#yaml.value[key] !== undefined) this.report([key], 'has no effect on tasks; remove it');
    }
    if (prompt.kind === 'text')
      this.#refuseUnknownNames(prompt.text, { instruction: '' }, ['suite', 'prompt'], ' of a task');
    const { reach } = this.#environmentParts;
    try {
      return casesOfTasks(sourceIn(this.#folder, source), reach, plan);
    } catch (error) {
      this.report(['tasks'], messageOf(error));
      return [];
    }
  }

  plannedCase(entry: CaseSource, index: number, prompt: PromptSource): PlannedCase {
    const path = ['cases', index];
    const variables = entry.variables ?? {};
    for (const name of Object.keys(variables).filter(isReservedName)) {
      this.report([...path, 'variables', name], 'this name decides how programs run; choose another one');
    }
    if (prompt.kind === 'text')
      this.#refuseUnknownNames(prompt.text, variables, ['suite', 'prompt'], ` in case ${entry.id}`);
    if (entry.verify === undefined && entry.validator === undefined) {
      this.report(path, 'has neither verify nor validator: with nothing to check, every trial would be void');
    }
    const request: Case = { id: entry.id, name: entry.name ?? entry.id };
    if (entry.tags) request.tags = entry.tags;
    if (entry.source) request.source = entry.source;
    if (entry.variables) request.variables = entry.variables;
    if (entry.prepare !== undefined)
      request.prepare = this.#prepare(entry.prepare, variables, [...path, 'prepare']);
    if (entry.verify !== undefined)
      request.verify = this.#script(scriptOf(entry.verify), variables, [...path, 'verify']);
    if (entry.validator)
      request.validator = this.#validator(entry.validator, variables, [...path, 'validator']);
    if (entry.user) {
      const { kind, goal, prompt } = entry.user;
      request.user = {
        kind,
        goal: this.#script(goal, variables, [...path, 'user', 'goal']),
        prompt: this.#script(prompt, variables, [...path, 'user', 'prompt']),
      };
      this.#refuseLoneUser([...path, 'user']);
    }
    return { request, local: this.#extras(entry, variables, path) };
  }

  refuseRepeated(list: string, names: string[], key: string): void {
    names.forEach((name, index) => {
      const first = names.indexOf(name);
      if (name !== '' && first < index)
        this.report([list, index, key], `"${name}" is already used by ${list}[${first}]`);
    });
  }

  #extras(entry: CaseSource, variables: Variables, path: Path): CaseExtras {
    const { solution, validator, user } = entry;
    return {
      artifacts: [...(this.#yaml.value.artifacts ?? []), ...(entry.artifacts ?? [])],
      protected: entry.protected ?? [],
      runsIn: validator?.runsIn ?? 'fresh',
      verifyPlace: this.#verifyPlace(entry.verify, [...path, 'verify']),
      onError: validator?.onError ?? 'void',
      userTurns: user?.maxTurns ?? 0,
      solution: solution === undefined ? undefined : this.#script(solution, variables, [...path, 'solution']),
      environment: this.#environment(entry, path),
    };
  }

  /** A case's environment, or the suite's if the case has none. */
  #environment({ environment: own }: CaseSource, path: Path): CaseEnvironment {
    const source = own ?? this.#yaml.value.environment;
    if (!source) return noEnvironment;
    const at = own ? [...path, 'environment'] : ['environment'];
    const known = this.#environments.get(source);
    if (known) return known;
    const placeOf = (key: string) => {
      const { file, line, column } = this.#yaml.issue([...at, key], '');
      return `${file}:${line}:${column}`;
    };
    const report = (key: string, issue: string | FileIssue) =>
      typeof issue === 'string' ? this.report([...at, key], issue) : this.issues.push(issue);
    const environment = plannedEnvironment(source, { ...this.#environmentParts, placeOf, report });
    this.#environments.set(source, environment);
    return environment;
  }

  #verifyPlace(verify: CaseSource['verify'], path: Path): VerifyPlace {
    if (typeof verify !== 'object') return freshVerify;
    const { in: where = 'fresh', keep = [], ignore = [], unexpected } = verify;
    if (unexpected !== undefined && where === 'fresh') {
      this.report([...path, 'unexpected'], 'requires in: same; a fresh sandbox shows no such changes');
    }
    return { in: where, keep, ignore, unexpected: unexpected ?? 'show' };
  }

  /** Every variant needs a model for the simulated user. */
  #refuseLoneUser(path: Path): void {
    this.#yaml.value.variants.forEach(({ userModel, name }, index) => {
      if (userModel === undefined) {
        this.report(path, `variants[${index}]${name ? ` (${name})` : ''} has no userModel to play this user`);
      }
    });
  }

  #prepare(prepare: NonNullable<CaseSource['prepare']>, variables: Variables, path: Path): Case['prepare'] {
    const parts = typeof prepare === 'string' ? { source: prepare } : prepare;
    const name = ('name' in parts && parts.name) || ('file' in parts ? basename(parts.file) : 'prepare');
    const text = 'file' in parts ? { file: parts.file } : parts.source;
    return { name, source: this.#script(text, variables, path) };
  }

  #validator(entry: NonNullable<CaseSource['validator']>, variables: Variables, path: Path): Validator {
    const file = 'file' in entry ? entry.file : undefined;
    const text = 'file' in entry ? { file: entry.file } : entry.source;
    const folder = dirname(file ?? '.');
    const validator: Validator = {
      name: entry.name ?? (file === undefined ? 'validator' : basename(file)),
      source: this.#script(text, variables, path),
    };
    if (entry.runsIn === 'same' && validator.source.startsWith('#!')) {
      this.report(
        [...path, 'runsIn'],
        'a program would start with what the agent left in its sandbox; make it a module, or remove runsIn',
      );
    }
    if (entry.capture !== undefined) validator.capture = entry.capture;
    if (entry.manifest) validator.manifest = entry.manifest.map((name, index) => ({ index, name }));
    if (entry.sourceFiles) {
      validator.sourceFiles = entry.sourceFiles.map((sourceFile, index) => {
        const beside = relative(folder, sourceFile);
        return {
          path: beside.startsWith('..') ? basename(sourceFile) : beside,
          content: this.#text({ file: sourceFile }, [...path, 'sourceFiles', index]),
        };
      });
    }
    return validator;
  }

  /** Reads a text and checks that every `{{name}}` in it is a variable of the case. */
  #script(text: Text, variables: Variables, path: Path): string {
    const source = this.#text(text, path);
    this.#refuseUnknownNames(source, variables, path, '', typeof text === 'object' ? text.file : undefined);
    return source;
  }

  #text(text: Text, path: Path): string {
    if (typeof text === 'string') return text;
    try {
      return this.#files.text(resolve(this.#folder, text.file));
    } catch (error) {
      if (error instanceof BadFile) this.issues.push(...error.issues);
      else this.report(path, messageOf(error));
      return '';
    }
  }

  #refuseUnknownNames(text: string, variables: Variables, path: Path, where: string, file?: string): void {
    expandVariables(text, variables, (name, offset) => {
      const message = `{{${name}}} is not a variable${where}; write \\{{ for literal braces`;
      if (file === undefined) this.report(path, message);
      else
        this.issues.push({
          file: join(this.#folder, file),
          ...positionInText(text, offset),
          path: '',
          message,
        });
    });
  }

  report(path: Path, message: string): void {
    this.issues.push(this.#yaml.issue(path, message));
  }
}

type Path = (string | number)[];

function scriptOf(verify: NonNullable<CaseSource['verify']>): Text {
  return typeof verify === 'object' && 'source' in verify ? verify.source : verify;
}
