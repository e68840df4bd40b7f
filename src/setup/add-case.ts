import { existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { Document, isCollection, isMap, isScalar, isSeq, parseDocument, Scalar } from 'yaml';
import { inputError, type OffsiteError } from '../base/offsite-error.ts';
import { loadConfig } from '../suite/load-config.ts';
import { SuiteFile } from '../suite/suite-file.ts';
import { namesIn, promptPlaceholder } from '../suite/variables.ts';
import { exactYaml, readText, yamlFileOf } from '../suite/yaml-file.ts';
import { patchedFiles } from '../tasks/swe-bench/row.ts';
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
    throw refused(
      `${file} does not exist`,
      'In the git repository of the change, name a suite with --suite, or write one: offsite init',
    );
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
  const id = options.id ?? freeId(change.title, cases);
  const item = caseText({
    id,
    change,
    test,
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
  writeNewFiles(folder, patches, { force, otherwise: 'name the case otherwise: --id NAME' });
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
    if (!source || !('ref' in source) || source.ref !== before) return false;
    const patch = join(folder, caseFolder(id), 'solution.patch');
    return existsSync(patch) && readFileSync(patch).equals(rest.patch);
  });
  if (same)
    throw refused(
      `${file} has a case of this change: ${same.id}`,
      `For a second one, name it: --id NAME. To start again, remove the case from ${file}, and add --force.`,
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
  const names = [...namesIn(source)];
  return names.length > 0 ? names : ['task'];
}

/** A short name that no case has. */
function freeId(title: string, cases: readonly FileCase[]): string {
  const words = title.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  let id = '';
  for (const word of words) {
    if (id.length + word.length > idCharacters) break;
    id = id === '' ? word : `${id}-${word}`;
  }
  id ||= 'change';
  const isTaken = (name: string) => cases.some((one) => one.id === name);
  if (!isTaken(id)) return id;
  let count = 2;
  while (isTaken(`${id}-${count}`)) count++;
  return `${id}-${count}`;
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
  return inputError('CASE_NOT_ADDED', message, { hint });
}

interface NewCase {
  id: string;
  change: Change;
  /** The repository, as the suite names it. */
  git: string;
  /** A script that gets the dependencies. */
  prepare: string | undefined;
  /** A command that runs the tests. */
  test: string;
  /** The variables of the suite's prompt. A person writes their values. */
  variables: readonly string[];
}

/** The folder of a case's files, relative to the suite. */
function caseFolder(id: string): string {
  return `cases/${id}`;
}

/** The case as an item of the suite's list, not indented. */
function caseText({ id, change, git, prepare, test, variables }: NewCase): string {
  const folder = caseFolder(id);
  const hasTests = change.tests.files.length > 0;
  const document = new Document([
    {
      id,
      name: oneLine(change.title),
      variables: Object.fromEntries(variables.map((name) => [name, `${promptPlaceholder}\n`])),
      source: { git, ref: change.before },
      ...(prepare !== undefined && { prepare: `${prepare}\n` }),
      tests: {
        in: 'fresh',
        brings: 'workspace',
        ...(hasTests && { patch: { source: { file: `${folder}/tests.patch` }, base: change.before } }),
        command: ['bash', '-c', gradingScript(test)],
        rewards: { json: '/logs/verifier/reward.json', text: '/logs/verifier/reward.txt' },
      },
      solution: {
        command: ['git', 'apply', '--whitespace=nowarn', '/solution/solution.patch'],
        files: { '/solution/solution.patch': `${folder}/solution.patch` },
      },
    },
  ]);
  const item = document.getIn([0], true);
  for (const { key } of isMap(item) ? item.items : []) {
    const comment = isScalar(key) ? comments[String(key.value)] : undefined;
    if (isScalar(key) && comment !== undefined) key.commentBefore = ` ${comment}`;
  }
  for (const path of onOneLine) {
    const node = document.getIn([0, ...path], true);
    if (isCollection(node)) node.flow = true;
  }
  const asked = document.getIn([0, 'variables'], true);
  for (const { value } of isMap(asked) ? asked.items : [])
    if (isScalar(value)) value.type = Scalar.BLOCK_LITERAL;
  return document.toString({ ...exactYaml, flowCollectionPadding: true });
}

/** The comments above the keys of the case. */
const comments: Readonly<Record<string, string>> = {
  variables: 'Write what the agent is asked, as a person would: what is wrong or wanted, not how to do it.',
  source: 'The repository as it was before the change.',
  prepare: 'Runs once, with network, before the agent.',
  tests: 'The tests of the change, which the agent does not see. They are put in place when it has ended.',
  solution: 'The change itself, for offsite check.',
};

const onOneLine = [
  ['source'],
  ['tests', 'patch'],
  ['tests', 'command'],
  ['tests', 'rewards'],
  ['solution', 'command'],
  ['solution', 'files'],
];

/** Runs the tests, and writes whether they passed. */
function gradingScript(test: string): string {
  return `if ${test}; then reward=1; else reward=0; fi; echo $reward > /logs/verifier/reward.txt`;
}

/** A title on one line, without unusual characters: anybody may have written a commit's subject. */
function oneLine(title: string): string {
  const plain = title.replaceAll(/[^\p{L}\p{N}\p{P}\p{S} ]+/gu, ' ').trim();
  return plain.slice(0, 100).toWellFormed() || 'change';
}

/**
 * The text of a suite with a case at the end of its list. All else stays as it is written.
 *
 * @param item the case as an item of a list, not indented
 */
function withCase(text: string, item: string, file: string): string {
  const changed = insertedInto(text, item);
  // Parses the new text as well, so that a wrong insertion is not written.
  const cases =
    changed === undefined ? [] : (yamlFileOf(changed, { file, schema: SuiteFile }).value.cases ?? []);
  const before = yamlFileOf(text, { file, schema: SuiteFile }).value.cases ?? [];
  if (changed === undefined || cases.length !== before.length + 1)
    throw inputError('SUITE_NOT_CHANGED', `${file} has no list of cases in which a case can be written`, {
      hint: 'Write `cases:` as a list with one item a line, as in docs/suites.md.',
    });
  return changed;
}

function insertedInto(text: string, item: string): string | undefined {
  const { contents } = parseDocument(text, { uniqueKeys: false });
  if (!isMap(contents)) return undefined;
  const cases = contents.get('cases', true);
  const ended = text === '' || text.endsWith('\n') ? text : `${text}\n`;
  if (cases === undefined && !contents.flow) return `${ended}\ncases:\n${indented(item, 2)}`;
  const last = isSeq(cases) ? cases.items.at(-1) : undefined;
  if (!isSeq(cases) || cases.flow || !cases.range || !isMap(last) || !last.range) return undefined;
  const column = cases.range[0] - text.lastIndexOf('\n', cases.range[0] - 1) - 1;
  // The end of the last value may be in the middle of its line, before a comment.
  const end = last.range[1];
  const atLine = end === 0 || text[end - 1] === '\n' ? end : text.indexOf('\n', end) + 1;
  const at = atLine === 0 ? ended.length : atLine;
  return `${ended.slice(0, at)}\n${indented(item, column)}${ended.slice(at)}`;
}

function indented(item: string, column: number): string {
  return item.replaceAll(/^(?=.)/gm, ' '.repeat(column));
}
