import { basename, dirname, join, relative } from 'node:path';
import type { Case, Validator } from '../contract/definition.ts';
import type { Config } from './config-file.ts';
import { SandboxConfig } from './config-file.ts';
import { BadFile, type FileIssue, placeInText } from './file-issues.ts';
import { loadProfile } from './load-profile.ts';
import type { ModelConfig, Wire } from './model-config.ts';
import type { PlannedCase, PlannedVariant, PromptSource, SuitePlan } from './plan.ts';
import { type CaseSource, SuiteFile, type Text } from './suite-file.ts';
import { expandVariables, isReservedName, type Variables } from './variables.ts';
import { readText, readYamlFile, type YamlFile } from './yaml-file.ts';

/**
 * Reads a suite file with all the files it names and checks it against the configuration. Throws {@link BadFile} with every problem
 * at its place; nothing has been started then.
 *
 * @param harnesses what this Offsite has
 */
export function loadSuite(file: string, config: Config, harnesses: readonly HarnessOffer[]): SuitePlan {
  const yaml = readYamlFile(file, SuiteFile);
  const source = yaml.value;
  const reading = new SuiteReading(yaml, dirname(file));
  const prompt = reading.prompt();
  const cases = source.cases.map((entry, index) => reading.plannedCase(entry, index, prompt));
  const variants = source.variants.map((_, index) =>
    plannedVariant(yaml, index, config, harnesses, reading.issues),
  );
  reading.refuseRepeated(
    'cases',
    source.cases.map(({ id }) => id),
    'id',
  );
  reading.refuseRepeated(
    'variants',
    variants.map((variant) => variant?.name ?? ''),
    'name',
  );
  if (reading.issues.length > 0) throw new BadFile(reading.issues);
  return {
    file,
    suite: { id: source.suite.id, name: source.suite.name ?? source.suite.id, prompt },
    trials: source.trials,
    cases,
    variants: variants.filter((variant) => variant !== undefined),
  };
}

/** What of a harness decides whether a variant can be. */
export interface HarnessOffer {
  name: string;
  wires: readonly Wire[] | 'any';
  mcp: boolean;
  limits: readonly string[];
}

/** One reading of a suite file: follows the files it names and collects what is wrong. */
class SuiteReading {
  readonly issues: FileIssue[] = [];
  readonly #yaml: YamlFile<SuiteFile>;
  readonly #folder: string;

  constructor(yaml: YamlFile<SuiteFile>, folder: string) {
    this.#yaml = yaml;
    this.#folder = folder;
  }

  prompt(): PromptSource {
    const { prompt } = this.#yaml.value.suite;
    if (typeof prompt === 'object' && 'prompt' in prompt) {
      const { prompt: id, channel, version } = prompt;
      return { kind: 'stored', id, channel, version };
    }
    return { kind: 'text', text: this.#text(prompt, ['suite', 'prompt']) };
  }

  plannedCase(entry: CaseSource, index: number, prompt: PromptSource): PlannedCase {
    const path = ['cases', index];
    const variables = entry.variables ?? {};
    for (const name of Object.keys(variables).filter(isReservedName)) {
      this.#report([...path, 'variables', name], 'this name decides how programs run; choose another');
    }
    if (prompt.kind === 'text')
      this.#refuseUnknownNames(prompt.text, variables, ['suite', 'prompt'], ` in case ${entry.id}`);
    if (entry.verify === undefined && entry.validator === undefined) {
      this.#report(
        path,
        'has neither verify nor validator: nothing would be checked, and every trial would be void',
      );
    }
    const request: Case = { id: entry.id, name: entry.name ?? entry.id };
    if (entry.tags) request.tags = entry.tags;
    if (entry.source) request.source = entry.source;
    if (entry.variables) request.variables = entry.variables;
    if (entry.prepare !== undefined)
      request.prepare = this.#prepare(entry.prepare, variables, [...path, 'prepare']);
    if (entry.verify !== undefined)
      request.verify = this.#script(entry.verify, variables, [...path, 'verify']);
    if (entry.validator)
      request.validator = this.#validator(entry.validator, variables, [...path, 'validator']);
    return { request, artifacts: [...(this.#yaml.value.artifacts ?? []), ...(entry.artifacts ?? [])] };
  }

  refuseRepeated(list: string, names: string[], key: string): void {
    names.forEach((name, index) => {
      const first = names.indexOf(name);
      if (name !== '' && first < index)
        this.#report([list, index, key], `"${name}" is taken by ${list}[${first}]`);
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

  /** A text in which every `{{name}}` must be a variable of the case. */
  #script(text: Text, variables: Variables, path: Path): string {
    const source = this.#text(text, path);
    this.#refuseUnknownNames(source, variables, path, '', typeof text === 'object' ? text.file : undefined);
    return source;
  }

  #text(text: Text, path: Path): string {
    if (typeof text === 'string') return text;
    try {
      return readText(join(this.#folder, text.file));
    } catch (error) {
      this.#report(path, error instanceof Error ? error.message : String(error));
      return '';
    }
  }

  #refuseUnknownNames(text: string, variables: Variables, path: Path, where: string, file?: string): void {
    expandVariables(text, variables, (name, offset) => {
      const message = `{{${name}}} is not a variable${where}; write \\{{ for two plain braces`;
      if (file === undefined) this.#report(path, message);
      else
        this.issues.push({ file: join(this.#folder, file), ...placeInText(text, offset), path: '', message });
    });
  }

  #report(path: Path, message: string): void {
    this.issues.push(this.#yaml.issue(path, message));
  }
}

type Path = (string | number)[];

function plannedVariant(
  yaml: YamlFile<SuiteFile>,
  index: number,
  config: Config,
  harnesses: readonly HarnessOffer[],
  issues: FileIssue[],
): PlannedVariant | undefined {
  const variant = yaml.value.variants[index];
  if (!variant) return undefined;
  const before = issues.length;
  const report = (key: string, message: string) => issues.push(yaml.issue(['variants', index, key], message));
  const { harness, sandbox, model } = variant;
  const offer = harnesses.find(({ name }) => name === harness);
  if (!offer) {
    const names = harnesses.map(({ name }) => name).join(', ');
    report('harness', `"${harness}" is not a harness; there are: ${names}`);
  }
  const sandboxConfig =
    config.sandboxes[sandbox] ?? (sandbox === 'local' ? SandboxConfig.parse({}) : undefined);
  if (!sandboxConfig)
    report('sandbox', `"${sandbox}" is not a sandbox of ${config.file ?? 'offsite.yaml (there is none)'}`);
  if (variant.profile !== undefined && !config.profiles[variant.profile]) {
    report(
      'profile',
      `"${variant.profile}" is not a profile of ${config.file ?? 'offsite.yaml (there is none)'}`,
    );
  }
  if (!offer || !sandboxConfig || issues.length > before) return undefined;
  const modelConfig = findModel(model, config);
  const unfit = modelObstacle(model, modelConfig, offer, sandboxConfig, config);
  if (unfit !== undefined) report('model', unfit);
  const profile = loadProfile(variant.profile, config);
  if (harness === 'command' && profile.run === undefined) {
    report(
      variant.profile === undefined ? 'harness' : 'profile',
      'the command harness needs a profile with a run script',
    );
  }
  if (harness !== 'command' && profile.run !== undefined) {
    report('profile', `has a run script, which only the command harness takes`);
  }
  if (Object.keys(profile.mcpServers).length > 0 && !offer.mcp) {
    report('profile', `has mcpServers, which the ${harness} harness cannot be given`);
  }
  if (profile.maxTurns !== undefined && !offer.limits.includes('turns')) {
    report('profile', `has maxTurns, which the ${harness} harness does not keep to`);
  }
  return {
    name: variant.name ?? [model, harness, variant.profile].filter((part) => part !== undefined).join('/'),
    model,
    modelConfig,
    harness,
    profile,
    sandbox: { name: sandbox, ...sandboxConfig },
    credentials: {
      harnessConnectionId: config.connections.harness[harness] ?? harness,
      sandboxConnectionId: config.connections.sandbox[sandbox] ?? sandbox,
    },
  };
}

/** A model of the configuration, by its name or one of its aliases. */
function findModel(model: string, { models }: Config): ModelConfig | undefined {
  return models[model] ?? Object.values(models).find(({ aliases }) => aliases.includes(model));
}

/** Why a harness could not use its model; undefined where it can, or needs none. */
function modelObstacle(
  model: string,
  modelConfig: ModelConfig | undefined,
  { name, wires }: HarnessOffer,
  { network }: SandboxConfig,
  { file }: Config,
): string | undefined {
  if (wires !== 'any' && wires.length === 0) return undefined;
  if (!modelConfig) return `"${model}" is not a model of ${file ?? 'offsite.yaml (there is none)'}`;
  if (network === 'none') return `the ${name} harness needs its model, which network none keeps from it`;
  if (wires === 'any' || 'scripted' in modelConfig) return undefined;
  if (modelConfig.wire.some((wire) => wires.includes(wire))) return undefined;
  return `"${model}" speaks ${modelConfig.wire.join(', ')}; the ${name} harness speaks ${wires.join(', ')}`;
}
