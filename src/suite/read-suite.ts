import { existsSync } from 'node:fs';
import { z } from 'zod';
import { OffsiteError } from '../base/offsite-error.ts';
import { ConfigFile } from './config-file.ts';
import { BadFile, type FileIssue } from './file-issues.ts';
import { SuiteFile } from './suite-file.ts';
import { readYamlFile, type YamlFile } from './yaml-file.ts';

export interface ReadSuite {
  yaml: YamlFile<SuiteFile>;
  /**
   * What does not match the schema. If there is any, `yaml` has only the rest of the file, for the other
   * checks.
   */
  issues: readonly FileIssue[];
}

/**
 * Reads a suite file. If some of its values do not match the schema, the cases and variants that do are still
 * checked in every other way, so that a person sees all problems at once. Throws {@link BadFile} if there is
 * too little to check.
 */
export function readSuite(file: string): ReadSuite {
  if (file.endsWith('.toml')) {
    const message = 'is no suite; for a task of Harbor, name its folder: offsite run --tasks FOLDER';
    throw new BadFile([{ file, line: 1, column: 1, path: '', message }]);
  }
  if (/^(batch|set)_[\w-]+$/.test(file) && !existsSync(file))
    throw new OffsiteError(`${file} looks like the id of a batch or a set; name the file of a suite`, {
      code: 'FILE_UNREADABLE',
      kind: 'input',
      hint: `Show it with \`offsite show ${file}\`, or continue it with \`offsite resume ${file}\`.`,
    });
  try {
    return { yaml: readYamlFile(file, SuiteFile, { others: { 'offsite.yaml': ConfigFile } }), issues: [] };
  } catch (error) {
    if (!(error instanceof BadFile)) throw error;
    const foreign = foreignIssue(file);
    if (foreign) throw new BadFile([foreign]);
    const yaml = soundRest(file, error.issues);
    if (!yaml) throw error;
    return { yaml, issues: error.issues };
  }
}

/** What does not match the schema, or cannot be read as YAML. Empty for a file that cannot be read at all. */
export function schemaIssues(file: string): readonly FileIssue[] {
  try {
    return readSuite(file).issues;
  } catch (error) {
    return error instanceof BadFile ? error.issues : [];
  }
}

/** What to say of a file of another program, in place of a problem for each of its keys. */
function foreignIssue(file: string): FileIssue | undefined {
  const whole = readWhole(file);
  const has = (key: string) => whole !== undefined && Object.hasOwn(whole.value, key);
  if (!whole || has('suite') || has('variants')) return undefined;
  if (has('turns') && !has('cases'))
    return whole.issue(
      [],
      'is the script of a model, not a suite: models.NAME.scripted of offsite.yaml names it, and a variant of a suite ' +
        'the model',
    );
  const isConfiguration = ['models', 'profiles', 'sandboxes', 'daemon', 'service'].some(has);
  if (isConfiguration && !has('cases') && !has('tasks'))
    return whole.issue(
      [],
      'is a configuration (models, profiles, sandboxes), not a suite; name the suite: Offsite finds the ' +
        'configuration beside it, or takes --config FILE',
    );
  const isOfPromptfoo =
    (has('prompts') && (has('providers') || has('tests'))) || (has('providers') && has('tests'));
  if (!isOfPromptfoo) return undefined;
  return whole.issue(
    [],
    'is a configuration of promptfoo, not a suite: `offsite init` writes a first suite here, and in it ' +
      'prompts become suite.prompt, providers become variants, tests become cases, and llm-rubric becomes judge',
  );
}

const lists = ['cases', 'variants'] as const;
type List = (typeof lists)[number];

/** Keys that nothing else depends on, so that they can be left out. */
const optional = ['trials', 'judges', 'artifacts'];
/** They take the place of what is left out, and are never checked. */
const stubs = {
  suite: { id: 'left-out', prompt: 'left out' },
  cases: { id: 'left-out', verify: 'true' },
  variants: { model: 'left-out', harness: 'left-out' },
};

function soundRest(file: string, issues: readonly FileIssue[]): YamlFile<SuiteFile> | undefined {
  const whole = readWhole(file);
  if (!whole) return undefined;
  const rest: Record<string, unknown> = { ...whole.value };
  const broken: Record<List, Set<number>> = { cases: new Set(), variants: new Set() };
  for (const { path } of issues) {
    const [, key = '', index] = /^(\w+)(?:\[(\d+)\])?/.exec(path) ?? [];
    const list = lists.find((one) => one === key);
    if (list && index !== undefined) broken[list].add(Number(index));
    else if (key === 'suite') rest.suite = stubs.suite;
    else if (optional.includes(key) || /^\w+$/.test(path)) delete rest[key];
    else return undefined;
  }
  const kept = {} as Record<List, number[]>;
  for (const list of lists) {
    const items = Array.isArray(rest[list]) ? rest[list] : [];
    kept[list] = [...items.keys()].filter((index) => !broken[list].has(index));
    if (items.length > 0) rest[list] = items.filter((_, index) => !broken[list].has(index));
    if (rest[list] !== undefined && kept[list].length === 0) rest[list] = [stubs[list]];
  }
  const parsed = SuiteFile.safeParse(rest);
  if (!parsed.success) return undefined;
  const value = parsed.data;
  for (const list of lists) if (kept[list].length === 0) value[list]?.pop();
  return {
    file,
    value,
    issue([key, index, ...path], message) {
      const list = lists.find((one) => one === key);
      const place = list && typeof index === 'number' ? kept[list][index] : index;
      return whole.issue(
        [key, place, ...path].filter((part) => part !== undefined),
        message,
      );
    },
  };
}

function readWhole(file: string): YamlFile<Record<string, unknown>> | undefined {
  try {
    return readYamlFile(file, z.record(z.string(), z.unknown()));
  } catch (error) {
    if (error instanceof BadFile) return undefined;
    throw error;
  }
}
