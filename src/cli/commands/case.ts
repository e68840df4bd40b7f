import { existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { OffsiteError } from '../../base/offsite-error.ts';
import { loadConfig } from '../../suite/load-config.ts';
import { SuiteFile } from '../../suite/suite-file.ts';
import { countNames } from '../../suite/variables.ts';
import { readText, yamlFileOf } from '../../suite/yaml-file.ts';
import { patchedFiles } from '../../tasks/swe-bench/patched-files.ts';
import { ours, stack, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { withCase } from '../case/add-to-suite.ts';
import { caseFolder, caseText } from '../case/case-text.ts';
import { type Change, type ChangeRequest, readChange } from '../case/read-change.ts';
import { testFileMatcher } from '../case/test-files.ts';
import { exampleCase } from '../init/first-files.ts';
import { writeNewFiles } from '../init/new-files.ts';
import { interruption } from '../interruption.ts';
import { toolsOf } from '../project/look-at-project.ts';
import { openTerminal } from '../terminal.ts';

export function caseCommand() {
  return new Command('case').description('make cases of a suite').addCommand(addCommand());
}

function addCommand() {
  const sources = ['commit', 'range', 'diff'];
  const one = (option: Option) => option.conflicts(sources.filter((name) => name !== option.attributeName()));
  return new Command('add')
    .description(
      'make a case of a change in the repository here: the state before it is the workspace, its tests grade, ' +
        'and the change is the solution',
    )
    .addOption(one(new Option('--commit <commit>', 'the change of this commit (default: HEAD)')))
    .addOption(one(new Option('--range <from..to>', 'the change of a range, such as main...my-branch')))
    .addOption(one(new Option('--diff <file>', "a diff, such as a pull request's")))
    .option('--base <commit>', 'with --diff: the commit that it applies to (default: HEAD)')
    .option('--suite <file>', 'the suite that gets the case (default: evals/suite.yaml)')
    .option('--id <id>', 'the id of the case (default: from the subject of the commit)', caseId)
    .option('--tests <glob...>', 'which files of the change are tests (default: by the usual names)')
    .option(
      '--test <command>',
      'the command that runs the tests (default: as the project before the change suggests)',
    )
    .option(
      '--prepare <script>',
      'gets the dependencies (default: as the project before the change suggests)',
    )
    .option(
      '--force',
      'replace the files of a case of this id, and allow a second case of the change with a free id',
    )
    .action(add);
}

type FileCase = NonNullable<SuiteFile['cases']>[number];

interface AddOptions {
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

/** An id of a case is also the name of its folder. */
function caseId(given: string): string {
  if (!/^[\w@+-][\w.@+-]{0,99}$/.test(given))
    throw new InvalidArgumentError('expected a name of letters, digits, dashes and dots.');
  return given;
}

async function add(options: AddOptions): Promise<void> {
  const { out, err } = openTerminal();
  const { suite: file = 'evals/suite.yaml', force = false } = options;
  if (!existsSync(file))
    throw refused(`${file} does not exist`, 'Name a suite with --suite, or write one: offsite init');
  using interrupted = interruption((message) => err.print(message), { doing: () => 'stopping' });
  const written = readText(file);
  const { suite, cases = [] } = yamlFileOf(written, { file, schema: SuiteFile }).value;
  const request = requestOf(options);
  const isTest = testFileMatcher(options.tests);
  const reading = { folder: '.', isTest, env: process.env, signal: interrupted.signal };
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
  out.print(
    stack([
      text`added the case ${id} to ${file}: ${plural(rest.files.length, 'file')} to solve it, graded by \`${test}\``,
      text`  tests that only grading sees: ${tests.files.join(', ') || 'none'}`,
      text`next:`,
      text`  write what the agent is asked, at TODO(offsite) in ${file}`,
      text`  offsite check ${file}    proves that the tests fail before the change, and pass after it`,
      ...(mayRead(change.repository, folder) ? [] : [ours(permission)]),
      ...(cases.some(isExample)
        ? [
            text`the example case \`greeting\` is still in ${file}, with a model that answers it alone: remove both`,
          ]
        : []),
    ]),
  );
}

const permission = `before that: let the suite use this repository, with a line in offsite.yaml beside it:
  allowOutside: [.]`;

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

function requestOf({ commit, range, diff, base }: AddOptions): ChangeRequest {
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
function mayRead(repository: string, suiteFolder: string): boolean {
  const { allowOutside } = loadConfig({ suiteFolder, env: process.env });
  return [suiteFolder, ...allowOutside].some((root) => {
    if (!existsSync(root)) return false;
    const path = relative(realpathSync(root), repository);
    return path !== '..' && !path.startsWith(`..${sep}`);
  });
}

function refused(message: string, hint: string): OffsiteError {
  return new OffsiteError(message, { code: 'CASE_NOT_ADDED', kind: 'input', hint });
}
