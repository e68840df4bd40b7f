import { existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { OffsiteError } from '../base/offsite-error.ts';
import { loadConfig } from '../suite/load-config.ts';
import { SuiteFile } from '../suite/suite-file.ts';
import { countNames } from '../suite/variables.ts';
import { readText, yamlFileOf } from '../suite/yaml-file.ts';
import { patchedFiles } from '../tasks/swe-bench/patched-files.ts';
import { caseFolder, caseText, withCase } from './case-text.ts';
import { exampleCase } from './first-files.ts';
import { writeNewFiles } from './new-files.ts';
import { toolsOf } from './project.ts';
import { type Change, type ChangeRequest, readChange, testFileMatcher } from './read-change.ts';

/** Which change becomes a case of which suite. What is missing is taken from the change and its project. */
export interface CaseOptions {
  commit?: string | undefined;
  range?: string | undefined;
  diff?: string | undefined;
  base?: string | undefined;
  suite?: string | undefined;
  id?: string | undefined;
  tests?: string[] | undefined;
  test?: string | undefined;
  prepare?: string | undefined;
  force?: boolean | undefined;
}

type FileCase = NonNullable<SuiteFile['cases']>[number];

export interface AddedCase {
  id: string;
  /** The suite. */
  file: string;
  change: Change;
  /** The command that grades it. */
  test: string;
  /** Whether a run of the suite may read the repository as it is configured. */
  mayRead: boolean;
  /** Whether the suite still has the case of `offsite init`. */
  hasExample: boolean;
}

/** Makes a case of a change in the repository here, and writes it into the suite. Throws `CASE_NOT_ADDED`. */
export async function addCase(
  options: CaseOptions,
  { env, signal }: { env: NodeJS.ProcessEnv; signal: AbortSignal },
): Promise<AddedCase> {
  const { suite: file = 'evals/suite.yaml', force = false } = options;
  if (!existsSync(file))
    throw refused(`${file} does not exist`, 'Name a suite with --suite, or write one: offsite init');
  const written = readText(file);
  const { suite, cases = [] } = yamlFileOf(written, { file, schema: SuiteFile }).value;
  const request = requestOf(options);
  const isTest = testFileMatcher(options.tests);
  const reading = { folder: '.', isTest, env, signal };
  const change = await readChange(request, reading);
  const project = toolsOf(change.project);
  const test = options.test ?? project.test;
  refuseUnprovable(change, test);
  const folder = dirname(file);
  if (options.id === undefined && !force) refuseSecond(change, { file, folder, cases });
  const id =
    options.id ??
    freeId(
      change.title,
      cases.map((one) => one.id),
    );
  const item = caseText({
    ...{ id, change, test },
    git: relative(realpathSync(folder), change.repository) || '.',
    prepare: options.prepare ?? project.install,
    variables: variablesOf(suite.prompt, folder),
  });
  const changed = withCase(written, item, file);
  const { tests, rest } = change;
  const below = caseFolder(id);
  const patches = [
    ...(tests.files.length > 0 ? [{ path: `${below}/tests.patch`, content: tests.patch }] : []),
    { path: `${below}/solution.patch`, content: rest.patch },
  ];
  writeNewFiles(folder, patches, force);
  writeFileSync(file, changed);
  const isAllowed = mayRead(change.repository, folder, env);
  return { id, file, change, test, mayRead: isAllowed, hasExample: cases.some(isExample) };
}

/** The case that `offsite init` writes. */
function isExample({ id, prepare }: FileCase): boolean {
  return id === exampleCase.id && prepare === exampleCase.prepare;
}

/** Throws if the suite has a case of this change. */
function refuseSecond(
  { before, rest }: Change,
  { file, folder, cases }: { file: string; folder: string; cases: readonly FileCase[] },
): void {
  const same = cases.find(({ id, source }) => {
    const patch = join(folder, caseFolder(id), 'solution.patch');
    return (
      source &&
      'ref' in source &&
      source.ref === before &&
      existsSync(patch) &&
      readFileSync(patch).equals(rest.patch)
    );
  });
  if (same)
    throw refused(
      `${file} has a case of this change: ${same.id}`,
      'For a second one, name it: --id NAME. To start again, remove the case first.',
    );
}

function requestOf({ commit, range, diff, base }: CaseOptions): ChangeRequest {
  if (base !== undefined && diff === undefined) throw refused('--base needs --diff', 'Add --diff FILE.');
  if (diff !== undefined) return { kind: 'diff', file: diff, base: base ?? 'HEAD' };
  if (range !== undefined) return { kind: 'range', range };
  return { kind: 'commit', commit: commit ?? 'HEAD' };
}

function refuseUnprovable({ title, tests, rest }: Change, test: string | undefined): asserts test is string {
  if (rest.files.length === 0)
    throw refused(
      `the change "${title}" changes nothing but tests`,
      'Choose another change, or say which of its files are tests with --tests.',
    );
  if (tests.files.length === 0)
    throw refused(
      `the change "${title}" changes no tests, so nothing distinguishes the state before from the state after`,
      'Choose another change, or say which of its files are tests with --tests.',
    );
  const read = patchedFiles(tests.patch.toString('utf8'));
  if ('problem' in read)
    throw refused(
      `the tests of ${title} cannot be put in place: ${read.problem}`,
      'Choose another change, or leave files out with --tests.',
    );
  if (test === undefined)
    throw refused(
      'the project before the change does not say what runs its tests',
      'Name the command: --test "make check"',
    );
}

/** The names of the variables in the suite's prompt; `task` if it has none. */
function variablesOf(prompt: SuiteFile['suite']['prompt'], folder: string): string[] {
  const isText = typeof prompt === 'string';
  const source = isText ? prompt : prompt && 'file' in prompt ? readText(join(folder, prompt.file)) : '';
  const names = [...countNames(source).names.keys()];
  return names.length > 0 ? names : ['task'];
}

/** A short name that no case has. */
function freeId(title: string, taken: readonly string[]): string {
  const words = title.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  let id = '';
  for (const word of words) {
    if (id.length + word.length > idCharacters) break;
    id = id === '' ? word : `${id}-${word}`;
  }
  id ||= 'change';
  for (let count = 2; ; count++) {
    const name = count === 2 && !taken.includes(id) ? id : `${id}-${count}`;
    if (!taken.includes(name)) return name;
  }
}

const idCharacters = 40;

/** Whether a run of the suite may read the repository without a further option. */
function mayRead(repository: string, suiteFolder: string, env: NodeJS.ProcessEnv): boolean {
  const { allowOutside } = loadConfig({ suiteFolder, env });
  return [suiteFolder, ...allowOutside].some((root) => {
    if (!existsSync(root)) return false;
    const path = relative(realpathSync(root), repository);
    return path !== '..' && !path.startsWith(`..${sep}`);
  });
}

function refused(message: string, hint: string): OffsiteError {
  return new OffsiteError(message, { code: 'CASE_NOT_ADDED', kind: 'input', hint });
}
